//! Traces calls: logs of operations on a worker and in a task are inside their caller's span, and
//! so are the outcomes of the calls.
//!
//! ```text
//! cargo run -p timeout-integration-examples --example traced
//! ```

use std::sync::mpsc::{Receiver, channel};

use timeout_runtime::integrations::tracing::{propagate_spans, record_events};
use timeout_runtime::{TimeoutError, timeout};
use tracing::{Level, info, instrument};

/// Runs on a worker.
#[timeout(name = "price", secs = 20)]
fn price(sku: &'static str) -> Result<u32, TimeoutError> {
    info!(sku, "looks up the price");
    Ok(12)
}

/// Runs in a task, which any thread of the runtime can poll.
#[timeout(name = "offer", secs = 20, run = "task")]
async fn offer(price: u32) -> Result<u32, TimeoutError> {
    info!(price, "makes an offer");
    tokio::task::yield_now().await;
    info!("has made an offer");
    Ok(price - 1)
}

/// Runs until the books arrive, also after its limit.
#[timeout(name = "audit", secs = 1, cancel = false)]
fn audit(books: Receiver<()>) -> Result<(), TimeoutError> {
    // An error means that no books will arrive.
    let _ = books.recv();
    info!("has audited");
    Ok(())
}

#[instrument]
async fn order(id: u32) -> Result<u32, TimeoutError> {
    let price = price("bolt")?;
    let offer = offer(price).await?;
    let (books, has_books) = channel();
    let late = audit(has_books);
    assert!(late.is_err_and(|error| error.is_timed_out()));
    // An error means that the audit has ended.
    let _ = books.send(());
    Ok(offer)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), TimeoutError> {
    tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_thread_names(true)
        .with_ansi(false)
        .without_time()
        .init();
    let _spans = propagate_spans();
    let _events = record_events();

    let offer = order(7).await?;
    assert_eq!(offer, 11);
    // Waits for the late event of the audit.
    timeout_runtime::workers::drain(std::time::Duration::from_secs(60));
    Ok(())
}
