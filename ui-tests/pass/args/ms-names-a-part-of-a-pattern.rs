use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = range.0)]
fn scan(range: (u64, u64)) -> Result<u64, TimeoutError> {
    let (from, to) = range;
    Ok(to - from)
}

/// A called name is a function, even if a part of a pattern has the same name.
#[timeout(ms = from())]
fn scan_from((from, to): (u64, u64)) -> Result<u64, TimeoutError> {
    Ok(to - from)
}

fn from() -> u64 {
    60_000
}

fn main() {
    assert_eq!(scan((60_000, 60_001)).unwrap(), 1);
    assert_eq!(scan_from((1, 2)).unwrap(), 1);
}
