use timeout_runtime::{TimeoutError, timeout};

struct Limits {
    grace: u64,
}

#[timeout(ms = 50, grace = limits.grace)]
fn scan(rows: Vec<u8>, limits: Limits) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
