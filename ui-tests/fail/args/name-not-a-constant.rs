use timeout_runtime::{TimeoutError, timeout};

#[timeout(name = label, ms = 50)]
fn scan(label: &'static str) -> Result<usize, TimeoutError> {
    Ok(label.len())
}

fn main() {}
