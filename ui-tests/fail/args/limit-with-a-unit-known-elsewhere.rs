use timeout_runtime::{TimeoutError, timeout};

#[timeout(limit = "5 min")]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
