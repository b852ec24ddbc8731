use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: impl Into<u8> + 'static) -> Result<u8, TimeoutError> {
    Ok(rows.into())
}

fn main() {}
