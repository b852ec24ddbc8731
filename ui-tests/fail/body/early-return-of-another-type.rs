use timeout_runtime::{TimeoutError, timeout};

fn is_done() -> bool {
    true
}

#[timeout(ms = 50)]
fn scan() -> Result<u32, TimeoutError> {
    if is_done() {
        let early: Result<&str, TimeoutError> = Ok("x");
        return early;
    }
    Ok(5)
}

fn main() {}
