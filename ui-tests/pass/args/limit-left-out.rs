use std::time::{Duration, Instant};

use timeout_runtime::{TimeoutError, timeout};

#[timeout(deadline = until)]
fn scan(until: Instant) -> Result<bool, TimeoutError> {
    Ok(cancel_token.deadline().remaining().is_some())
}

fn main() {
    assert!(scan(Instant::now() + Duration::from_secs(60)).unwrap());
}
