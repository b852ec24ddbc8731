use timeout_runtime::{TimeoutError, timeout};

#[timeout(name = 5, ms = 50)]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
