#![deny(unused_mut)]

use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(mut rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
