use timeout_runtime::{TimeoutError, timeout};

#[timeout(rows.len())]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
