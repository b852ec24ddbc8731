use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(cancel_token: u64) -> Result<u64, TimeoutError> {
    Ok(cancel_token)
}

fn main() {}
