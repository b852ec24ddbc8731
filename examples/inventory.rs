//! The whole timeout pattern: a caller that waits 50 ms, a signal, and an operation of 1000 ms that hears it and stops.
//!
//! ```text
//! cargo run -p timeout-examples --example inventory
//! ```

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use timeout_runtime::{TimeoutError, timeout};

#[derive(Debug, thiserror::Error)]
enum StockError {
    #[error("`{0}` is not kept here")]
    Unknown(String),
    #[error(transparent)]
    NoAnswer(#[from] TimeoutError),
}

struct Inventory {
    work: Mutex<&'static str>,
    counts: HashMap<&'static str, u32>,
}

impl Inventory {
    #[timeout(name = "inventory", ms = 50)]
    async fn stock(&self, sku: &str) -> Result<u32, StockError> {
        self.set_work("running");
        let lookup = tokio::time::sleep(Duration::from_secs(1));
        if cancel_token.run_until_cancelled(lookup).await.is_none() {
            self.set_work("stopped by cancellation");
            cancel_token.check()?;
        }
        self.set_work("completed");
        let count = self.counts.get(sku).copied();
        count.ok_or_else(|| StockError::Unknown(sku.to_owned()))
    }

    fn set_work(&self, work: &'static str) {
        *self.work.lock().unwrap() = work;
    }

    fn work(&self) -> &'static str {
        *self.work.lock().unwrap()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let inventory = Inventory {
        work: Mutex::new("not started"),
        counts: HashMap::from([("bolt", 7)]),
    };
    match inventory.stock("bolt").await {
        Ok(count) => println!("in stock: {count}"),
        Err(StockError::NoAnswer(error)) if error.is_timed_out() => println!("timed out"),
        Err(error) => println!("no stock: {error}"),
    }
    println!("work: {}", inventory.work());
}
