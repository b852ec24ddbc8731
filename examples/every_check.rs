//! Finds the place where a cancellation leaves something behind, in sync and in async code.
//!
//! ```text
//! cargo run -p timeout-examples --example every_check
//! ```

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use timeout_runtime::testing::{CancelPoint, TestClock};
use timeout_runtime::testing::{cancel_at_every_check, cancel_at_every_check_async};
use timeout_runtime::{TimeoutError, timeout};

/// The stock of one article.
#[derive(Default)]
struct Stock {
    reserved: Mutex<u32>,
}

impl Stock {
    fn reserved(&self) -> MutexGuard<'_, u32> {
        self.reserved
            .lock()
            .expect("no code panics under this lock")
    }
}

/// An article that is reserved until this value is dropped.
struct Reservation<'a>(&'a Stock);

impl<'a> Reservation<'a> {
    fn of(stock: &'a Stock) -> Self {
        *stock.reserved() += 1;
        Self(stock)
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        *self.0.reserved() -= 1;
    }
}

/// Asks the customer's bank, which takes half a minute.
const PAYMENT: Duration = Duration::from_secs(30);

/// This order has a fault: after a cancellation during the payment, the article stays reserved.
#[timeout(name = "order", secs = 60)]
fn order(stock: Arc<Stock>) -> Result<(), TimeoutError> {
    cancel_token.check()?;
    *stock.reserved() += 1;
    cancel_token.sleep(PAYMENT)?;
    *stock.reserved() -= 1;
    cancel_token.check()
}

#[timeout(name = "safe_order", secs = 60)]
fn safe_order(stock: Arc<Stock>) -> Result<(), TimeoutError> {
    cancel_token.check()?;
    let reservation = Reservation::of(&stock);
    cancel_token.sleep(PAYMENT)?;
    drop(reservation);
    cancel_token.check()
}

/// As `order`. This future is dropped while it is pending.
#[timeout(name = "async_order", secs = 60)]
async fn async_order(clock: &TestClock, stock: &Stock) -> Result<(), TimeoutError> {
    *stock.reserved() += 1;
    clock.sleep(PAYMENT).await;
    *stock.reserved() -= 1;
    Ok(())
}

#[timeout(name = "safe_async_order", secs = 60)]
async fn safe_async_order(clock: &TestClock, stock: &Stock) -> Result<(), TimeoutError> {
    let _reservation = Reservation::of(stock);
    clock.sleep(PAYMENT).await;
    Ok(())
}

/// What `cancel_at_every_check` found. A test would simply panic.
fn report(name: &str, test: impl FnOnce() -> Vec<CancelPoint>) {
    match panic::catch_unwind(AssertUnwindSafe(test)) {
        Ok(points) => println!("{name} cleans up at each of its {} points", points.len()),
        Err(_) => println!("{name} leaves an article reserved"),
    }
}

fn main() {
    // The panics are reported below.
    panic::set_hook(Box::new(|_| {}));
    let clock = TestClock::new();

    report("order", || {
        clock.run(|| {
            cancel_at_every_check(|| {
                let stock = Arc::<Stock>::default();
                let _ = order(Arc::clone(&stock));
                assert_eq!(*stock.reserved(), 0);
            })
        })
    });
    report("safe_order", || {
        clock.run(|| {
            cancel_at_every_check(|| {
                let stock = Arc::<Stock>::default();
                let _ = safe_order(Arc::clone(&stock));
                assert_eq!(*stock.reserved(), 0);
            })
        })
    });

    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    report("async_order", || {
        runtime.block_on(clock.scope(cancel_at_every_check_async(|| async {
            let stock = Stock::default();
            let _ = async_order(&clock, &stock).await;
            assert_eq!(*stock.reserved(), 0);
        })))
    });
    report("safe_async_order", || {
        runtime.block_on(clock.scope(cancel_at_every_check_async(|| async {
            let stock = Stock::default();
            let _ = safe_async_order(&clock, &stock).await;
            assert_eq!(*stock.reserved(), 0);
        })))
    });
}
