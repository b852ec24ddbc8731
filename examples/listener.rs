//! A listener that prints every event, and calls that provoke each kind of event once or more.
//!
//! ```text
//! cargo run -p timeout-examples --example listener
//! ```

use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use timeout_runtime::{CancelToken, TimeoutError, add_listener, timeout};

type Answer<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[timeout(name = "price", secs = 20)]
fn price(sku: &'static str) -> Answer<usize> {
    match sku {
        "bolt" => Ok(12),
        _ => Err("sold out".into()),
    }
}

/// Works until it is told to stop.
#[timeout(name = "stock", ms = 50, run = "inline")]
fn stock() -> Answer<u32> {
    match cancel_token.wait_timeout(Duration::MAX) {
        Some(_) => Err("stopped".into()),
        None => Ok(7),
    }
}

/// The call inside has a longer limit, and ends with this one.
#[timeout(name = "order", ms = 50, run = "inline")]
fn order() -> Answer<u32> {
    #[timeout(name = "payment", secs = 20, run = "inline")]
    fn payment() -> Answer<u32> {
        match cancel_token.wait_timeout(Duration::MAX) {
            Some(_) => Err("stopped".into()),
            None => Ok(1),
        }
    }

    payment().map_err(|_| "not paid".into())
}

/// Stops when its caller's token fires, too.
#[timeout(name = "shipping", secs = 20, run = "inline")]
fn shipping(cancel_token: &CancelToken, started: &Sender<()>) -> Answer<u32> {
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

/// Is not told of its limit, and runs until `answer` comes.
#[timeout(name = "audit", secs = 1, cancel = false)]
fn audit(answer: Receiver<Answer<u32>>) -> Answer<u32> {
    answer.recv().unwrap_or(Ok(0))
}

fn cancelled_by_its_caller() {
    let token = CancelToken::new();
    let (started, has_started) = channel();
    let canceller = token.clone();
    thread::spawn(move || {
        // An error means that it will never start.
        let _ = has_started.recv();
        canceller.cancel();
    });
    let _ = shipping(&token, &started);
    // The token stays fired: this call does not start.
    let _ = shipping(&token, &started);
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (late, ended) = channel();
    let _listener = add_listener(move |event| {
        println!("{event}");
        if event.name == "audit" && !event.kind.is_verdict() {
            // An error means that `main` is over.
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
        () = std::future::ready(()) => {} // The call has been polled, and is dropped.
    }
    for answer in [Ok(7), Err("sold out".into())] {
        let (send, receiver) = channel();
        let _ = audit(receiver);
        // The operation runs on without its caller; now it ends.
        let _ = send.send(answer);
        let _ = ended.recv();
    }
}
