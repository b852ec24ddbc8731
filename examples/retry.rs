//! Retries with two limits: one for each attempt, inside, and one for all attempts and the waits between them, outside. What passes
//! the first is tried again, what passes the second is over.
//!
//! ```text
//! cargo run -p timeout-examples --example retry
//! ```

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use timeout_runtime::{Cause, TimeoutError, timeout};

/// A shop whose first answers are so slow that they never come.
struct Shop {
    slow: u32,
    /// How long an attempt may take.
    patience: Duration,
    /// How long to wait before the next one.
    pause: Duration,
    attempts: AtomicU32,
}

impl Shop {
    fn new(slow: u32, patience: Duration, pause: Duration) -> Self {
        Self {
            slow,
            patience,
            pause,
            attempts: AtomicU32::new(0),
        }
    }

    #[timeout(name = "attempt", limit = self.patience)]
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
                // An attempt that took too long is worth another one. Where time is up for all of them, none is.
                error.is_timed_out()
            })
            .await
    }
}

fn cause(error: &TimeoutError) -> &'static str {
    match error.cause() {
        Cause::TimedOut => "timed out",
        Cause::DeadlineExceeded => "ran past the deadline around it",
        _ => "was not made",
    }
}

async fn show(what: &str, shop: Shop, total: Duration) {
    println!("{what}:");
    match shop.order(total).await {
        Ok(count) => println!("  answer: {count} pieces"),
        Err(error) => println!("  no answer: {} {}", error.name(), cause(&error)),
    }
    // Whatever was left of the retries would go on now.
    let before = shop.attempts.load(Ordering::Relaxed);
    tokio::time::sleep(shop.pause).await;
    let more = shop.attempts.load(Ordering::Relaxed) - before;
    println!("  attempts after that: {more}");
}

#[tokio::main]
async fn main() {
    let ms = Duration::from_millis;
    let minute = Duration::from_secs(60);
    show("one slow answer", Shop::new(1, ms(250), ms(10)), minute).await;
    show("slow answers only", Shop::new(9, ms(50), ms(10)), minute).await;
    show(
        "no time for a pause",
        Shop::new(9, ms(50), ms(1500)),
        ms(1000),
    )
    .await;
    show(
        "no time for an attempt",
        Shop::new(9, minute, ms(10)),
        ms(200),
    )
    .await;
}
