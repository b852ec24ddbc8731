use timeout_runtime::{TimeoutError, timeout};

const PATIENCE: u64 = 50;

#[timeout(PATIENCE)]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
