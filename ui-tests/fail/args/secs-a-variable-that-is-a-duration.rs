use std::time::Duration;

use timeout_runtime::{TimeoutError, timeout};

#[timeout(secs = limit)]
fn scan(rows: Vec<u8>, limit: Duration) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
