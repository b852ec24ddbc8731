//! The timeout pattern: the caller waits for 50 ms, the deadline cancels the token, and the
//! operation of 1000 ms stops.
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
    #[error("`{0}` is not in the inventory")]
    Unknown(String),
    #[error(transparent)]
    Timeout(#[from] TimeoutError),
}

struct Inventory {
    progress: Mutex<&'static str>,
    counts: HashMap<&'static str, u32>,
}

impl Inventory {
    #[timeout(name = "inventory", ms = 50)]
    async fn stock(&self, sku: &str) -> Result<u32, StockError> {
        self.set_progress("running");
        let lookup = tokio::time::sleep(Duration::from_secs(1));
        if cancel_token.run_until_cancelled(lookup).await.is_none() {
            self.set_progress("stopped by cancellation");
            cancel_token.check()?;
        }
        self.set_progress("completed");
        let count = self.counts.get(sku).copied();
        count.ok_or_else(|| StockError::Unknown(sku.to_owned()))
    }

    fn set_progress(&self, progress: &'static str) {
        *self.progress.lock().unwrap() = progress;
    }

    fn progress(&self) -> &'static str {
        *self.progress.lock().unwrap()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let inventory = Inventory {
        progress: Mutex::new("not started"),
        counts: HashMap::from([("bolt", 7)]),
    };
    match inventory.stock("bolt").await {
        Ok(count) => println!("in stock: {count}"),
        Err(StockError::Timeout(error)) if error.is_timed_out() => println!("timed out"),
        Err(error) => println!("failed: {error}"),
    }
    println!("operation: {}", inventory.progress());
}
