use std::pin::Pin;

use timeout_runtime::{TimeoutError, timeout};

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> Result<Work<usize>, TimeoutError> {
    Ok(Box::pin(async move { rows.len() }))
}

fn main() {}
