use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50, token = "not one")]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
