use timeout_runtime::{TimeoutError, timeout};

#[timeout(std::time::Duration::from_secs(5))]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
