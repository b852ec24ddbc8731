use timeout_runtime::{TimeoutError, timeout};

#[timeout(secs = 0)]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
