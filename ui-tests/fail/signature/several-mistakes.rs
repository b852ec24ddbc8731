use timeout_runtime::{TimeoutError, timeout};

#[timeout(name = 5, mss = 50, run = "thread", limit = "0s")]
const fn scan(rows: u8) -> Result<u8, TimeoutError> {
    Ok(rows)
}

fn main() {}
