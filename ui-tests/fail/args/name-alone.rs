use timeout_runtime::{TimeoutError, timeout};

#[timeout("scan", ms = 50)]
fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
