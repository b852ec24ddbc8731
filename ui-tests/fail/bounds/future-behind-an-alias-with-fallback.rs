use std::pin::Pin;

use timeout_runtime::timeout;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[timeout(ms = 50, fallback = |_| Box::pin(async { 0 }))]
fn scan(rows: Vec<u8>) -> Work<usize> {
    Box::pin(async move { rows.len() })
}

fn main() {}
