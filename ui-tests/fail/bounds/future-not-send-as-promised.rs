use std::rc::Rc;

use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: u8) -> impl Future<Output = Result<u8, TimeoutError>> + Send {
    async move {
        let shared = Rc::new(rows);
        std::future::ready(()).await;
        Ok(*shared)
    }
}

fn main() {}
