use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50, run = "task")]
async fn scan(text: &str) -> Result<usize, TimeoutError> {
    Ok(text.len())
}

fn main() {}
