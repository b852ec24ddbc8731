//! Prints every event with a listener, for calls that end in each possible way.
//!
//! ```text
//! cargo run -p timeout-examples --example listener
//! ```

use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use timeout_runtime::{CancelToken, EventKind, TimeoutError, add_listener, timeout};

type BoxResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[timeout(name = "price", secs = 20)]
fn price(sku: &'static str) -> BoxResult<usize> {
    match sku {
        "bolt" => Ok(12),
        _ => Err("sold out".into()),
    }
}

/// Stops with the error of its token.
#[timeout(name = "stock", ms = 50, run = "inline")]
fn stock() -> BoxResult<u32> {
    cancel_token.sleep(Duration::MAX)?;
    Ok(7)
}

/// The nested call has a longer limit, but ends at the deadline of this call.
#[timeout(name = "order", ms = 50, run = "inline")]
fn order() -> BoxResult<u32> {
    #[timeout(name = "payment", secs = 20, run = "inline")]
    fn payment() -> BoxResult<u32> {
        cancel_token.sleep(Duration::MAX)?;
        Ok(1)
    }

    payment().map_err(|_| "not paid".into())
}

/// Also ends when the caller's token is cancelled. Fails then, with an error of its own.
#[timeout(name = "shipping", secs = 20, run = "inline")]
fn shipping(cancel_token: &CancelToken, started: &Sender<()>) -> BoxResult<u32> {
    started.send(())?;
    match cancel_token.wait_timeout(Duration::MAX) {
        Some(_) => Err("recalled".into()),
        None => Ok(3),
    }
}

#[timeout(name = "offer", secs = 20)]
async fn offer() -> Result<(), TimeoutError> {
    std::future::pending().await
}

/// Runs until `result` arrives, also after its limit.
#[timeout(name = "audit", secs = 1, cancel = false)]
fn audit(result: Receiver<BoxResult<u32>>) -> BoxResult<u32> {
    result.recv().unwrap_or(Ok(0))
}

fn cancelled_by_its_caller() {
    let token = CancelToken::new();
    let (started, has_started) = channel();
    let canceller = token.clone();
    thread::spawn(move || {
        // An error means that the call never starts.
        let _ = has_started.recv();
        canceller.cancel();
    });
    let _ = shipping(&token, &started);
    // The token stays cancelled, so this call does not start.
    let _ = shipping(&token, &started);
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (late, ended) = channel();
    let _listener = add_listener(move |event| {
        println!("{event}");
        let has_ended = matches!(
            event.kind,
            EventKind::AbandonedWorkerSucceeded | EventKind::AbandonedWorkerFailed(_)
        );
        if event.name == "audit" && has_ended {
            // An error means that `main` has returned.
            let _ = late.send(());
        }
    });

    let _ = price("bolt");
    let _ = price("nut");
    let _ = stock();
    let _ = order();
    cancelled_by_its_caller();
    tokio::select! {
        biased;
        _ = offer() => {}
        () = std::future::ready(()) => {} // Drops the call after its first poll.
    }
    for result in [Ok(7), Err("sold out".into())] {
        let (send, receiver) = channel();
        let _ = audit(receiver);
        // The abandoned operation is still running. This makes it return.
        let _ = send.send(result);
        let _ = ended.recv();
    }
}
