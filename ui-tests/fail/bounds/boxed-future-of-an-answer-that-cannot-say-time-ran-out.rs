use std::pin::Pin;

use timeout_runtime::timeout;

#[timeout(ms = 50)]
fn scan(rows: Vec<u8>) -> Pin<Box<dyn Future<Output = usize>>> {
    Box::pin(async move { rows.len() })
}

fn main() {}
