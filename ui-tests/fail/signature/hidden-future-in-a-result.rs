use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> Result<impl Future<Output = usize>, TimeoutError> {
    Ok(async move { rows.len() })
}

fn main() {}
