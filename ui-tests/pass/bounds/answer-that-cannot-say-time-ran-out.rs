use timeout_runtime::{TimeoutError, panic_on_timeout, timeout};

struct NotDebug;

#[timeout(secs = 60, fallback = |_| 0)]
fn scan(rows: Vec<u8>) -> usize {
    rows.len()
}

#[timeout(secs = 60, fallback = panic_on_timeout)]
fn nothing() {}

#[timeout(secs = 60, fallback = default)]
async fn anything<T: Default>(value: T) -> T {
    value
}

#[timeout(secs = 60, fallback = |_| Err(NotDebug))]
fn not_debug() -> Result<u8, NotDebug> {
    Ok(7)
}

fn default<T: Default>(_: TimeoutError) -> T {
    T::default()
}

fn main() {
    assert_eq!(scan(vec![1]), 1);
    nothing();
    assert!(not_debug().is_ok());
    drop(anything(7));
}
