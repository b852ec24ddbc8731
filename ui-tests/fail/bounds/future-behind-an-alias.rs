use std::pin::Pin;

use timeout_runtime::{TimeoutError, timeout};

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> Work<Result<usize, TimeoutError>> {
    Box::pin(async move { Ok(rows.len()) })
}

fn main() {}
