use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50, cancel = false)]
fn scan(rows: &mut Vec<u8>) -> Result<(), TimeoutError> {
    rows.clear();
    Ok(())
}

fn main() {}
