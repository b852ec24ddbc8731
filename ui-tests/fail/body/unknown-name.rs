use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(row.len())
}

fn main() {}
