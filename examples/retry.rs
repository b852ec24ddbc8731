//! Retries with two limits: one for each attempt, and one for all attempts and the pauses between
//! them. After the first limit the attempt is retried; after the second, the call ends.
//!
//! ```text
//! cargo run -p timeout-examples --example retry
//! ```

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use timeout_runtime::{Cause, TimeoutError, timeout};

/// A shop whose first responses never arrive.
struct Shop {
    /// The number of attempts without a response.
    slow: u32,
    /// The limit of an attempt.
    limit: Duration,
    /// The time between two attempts.
    pause: Duration,
    attempts: AtomicU32,
}

impl Shop {
    fn new(slow: u32, limit: Duration, pause: Duration) -> Self {
        Self {
            slow,
            limit,
            pause,
            attempts: AtomicU32::new(0),
        }
    }

    #[timeout(name = "attempt", limit = self.limit)]
    async fn attempt(&self) -> Result<u32, TimeoutError> {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        println!("  attempt {number}");
        if number <= self.slow {
            pending::<()>().await;
        }
        Ok(7)
    }

    #[timeout(name = "order", limit = total)]
    async fn order(&self, total: Duration) -> Result<u32, TimeoutError> {
        let attempt = || self.attempt();
        let twice_more = ConstantBuilder::default()
            .with_delay(self.pause)
            .with_max_times(2);
        attempt
            .retry(twice_more)
            .when(|error| {
                println!("  {} {}", error.name(), cause(error));
                // Retries after the limit of an attempt, but not after the deadline of all
                // attempts.
                error.is_timed_out()
            })
            .await
    }
}

fn cause(error: &TimeoutError) -> &'static str {
    match error.cause() {
        Cause::TimedOut => "timed out",
        Cause::DeadlineExceeded => "exceeded the enclosing deadline",
        _ => "was not started",
    }
}

async fn show(title: &str, shop: Shop, total: Duration) {
    println!("{title}:");
    match shop.order(total).await {
        Ok(count) => println!("  result: {count} pieces"),
        Err(error) => println!("  no result: {} {}", error.name(), cause(&error)),
    }
    // A retry that continues after the call would show up in this time.
    let before = shop.attempts.load(Ordering::Relaxed);
    tokio::time::sleep(shop.pause).await;
    let more = shop.attempts.load(Ordering::Relaxed) - before;
    println!("  attempts after the call: {more}");
}

#[tokio::main]
async fn main() {
    let ms = Duration::from_millis;
    let minute = Duration::from_secs(60);
    show("one slow response", Shop::new(1, ms(250), ms(10)), minute).await;
    show("slow responses only", Shop::new(9, ms(50), ms(10)), minute).await;
    show(
        "too little time for a pause",
        Shop::new(9, ms(50), ms(1500)),
        ms(1000),
    )
    .await;
    show(
        "too little time for an attempt",
        Shop::new(9, minute, ms(10)),
        ms(200),
    )
    .await;
}
