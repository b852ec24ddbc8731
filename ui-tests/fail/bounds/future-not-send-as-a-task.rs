use std::rc::Rc;

use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50, run = "task")]
async fn scan(rows: u8) -> Result<u8, TimeoutError> {
    let shared = Rc::new(rows);
    std::future::ready(()).await;
    Ok(*shared)
}

fn main() {}
