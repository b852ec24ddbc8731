use std::error::Error;

use timeout_runtime::timeout;

type Answer = Result<usize, Box<dyn Error>>;

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> Answer {
    Ok(rows.len())
}

fn main() {}
