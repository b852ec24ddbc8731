use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: &[u8]) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
