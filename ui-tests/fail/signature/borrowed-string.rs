use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(text: &str) -> Result<usize, TimeoutError> {
    Ok(text.len())
}

fn main() {}
