use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan<T: Into<u8>>(rows: T) -> Result<u8, TimeoutError> {
    Ok(rows.into())
}

fn main() {}
