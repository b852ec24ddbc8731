use std::error::Error;

use timeout_runtime::timeout;

#[timeout(ms = 50, run = "task")]
async fn scan(rows: Vec<u8>) -> Result<usize, Box<dyn Error>> {
    Ok(rows.len())
}

fn main() {}
