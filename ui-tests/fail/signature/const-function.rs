use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
const fn scan(rows: u8) -> Result<u8, TimeoutError> {
    Ok(rows)
}

fn main() {}
