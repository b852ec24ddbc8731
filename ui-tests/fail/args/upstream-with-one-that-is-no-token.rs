use timeout_runtime::{CancelToken, TimeoutError, timeout};

#[timeout(ms = 50, upstream = [shutdown, limit])]
fn scan(shutdown: CancelToken, limit: u64) -> Result<u64, TimeoutError> {
    Ok(limit)
}

fn main() {}
