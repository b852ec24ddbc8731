#![deny(unreachable_code)]

use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    return Ok(rows.len());
    println!("never");
}

fn main() {}
