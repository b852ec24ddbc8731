use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(text: &str) -> Result<&str, TimeoutError> {
    Ok(text.trim())
}

fn main() {}
