use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = std::time::Duration::from_secs(1))]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
