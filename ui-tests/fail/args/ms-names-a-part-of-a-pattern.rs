use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = from)]
fn scan((from, to): (u64, u64)) -> Result<u64, TimeoutError> {
    Ok(to - from)
}

fn main() {}
