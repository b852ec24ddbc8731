//! Messages that arrive close to the limit of their receiver: each is received once.

use std::thread;
use std::time::Duration;

use fastrand::Rng;
use timeout_runtime::{TimeoutError, add_listener, timeout};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::ledger::breach;

#[timeout(name = "next message", ms = 3)]
async fn next(messages: &mut UnboundedReceiver<u32>) -> Result<Option<u32>, TimeoutError> {
    Ok(messages.recv().await)
}

/// Sends `count` messages at 2.7 to 3.3 ms, half of them with a listener, and receives them with a
/// limit of 3 ms.
pub(crate) fn run(seed: u64, count: u32) {
    let timeouts = receive(seed, 0..count / 2);
    let _listener = add_listener(|_| {});
    let timeouts = timeouts + receive(seed, count / 2..count);
    println!("messages near the limit: {count} sent, {timeouts} waits timed out");
}

/// The number of waits for a message that timed out.
fn receive(seed: u64, numbers: std::ops::Range<u32>) -> u32 {
    let (sender, mut messages) = unbounded_channel();
    let sent = numbers.clone();
    let other = thread::spawn(move || {
        let mut random = Rng::with_seed(seed);
        for number in sent {
            thread::sleep(Duration::from_micros(random.u64(2700..3300)));
            if sender.send(number).is_err() {
                return;
            }
        }
    });
    let runtime = Builder::new_current_thread().build();
    let Ok(runtime) = runtime else {
        breach("no runtime could be built".to_owned());
        return 0;
    };
    let mut timeouts = 0;
    runtime.block_on(async {
        let mut expected = numbers;
        loop {
            match next(&mut messages).await {
                Ok(Some(number)) => {
                    if expected.next() != Some(number) {
                        breach(format!("a message before {number} is lost"));
                        return;
                    }
                }
                Ok(None) => break,
                Err(_) => timeouts += 1,
            }
        }
        if let Some(number) = expected.next() {
            breach(format!("message {number} is lost"));
        }
    });
    if other.join().is_err() {
        breach("the sender panicked".to_owned());
    }
    timeouts
}
