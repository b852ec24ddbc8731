use timeout_runtime::{TimeoutError, timeout};

fn is_done() -> bool {
    true
}

#[timeout(ms = 50)]
fn scan() -> Result<u32, TimeoutError> {
    if is_done() {
        return Ok("x");
    }
    Ok(5)
}

fn main() {}
