//! `cancel = false`: the caller stops waiting after 50 ms, the operation is not told and runs on for its 1000 ms. How it ended is
//! reported by an event, late.
//!
//! ```text
//! cargo run -p timeout-examples --example abandoned
//! ```

use std::sync::{Arc, Mutex};
use std::time::Duration;

use timeout_runtime::{EventKind, TimeoutError, add_listener, timeout};
use tokio::sync::Notify;

#[derive(Clone, Copy)]
struct State {
    work: &'static str,
    count: u32,
}

struct Inventory {
    state: Mutex<State>,
}

impl Inventory {
    /// It outlives its call, so it owns what it works on.
    #[timeout(name = "inventory", secs = 1, cancel = false)]
    async fn stock(self: Arc<Self>) -> Result<u32, TimeoutError> {
        self.set("running", 0);
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.set("completed", 7);
        Ok(7)
    }

    fn set(&self, work: &'static str, count: u32) {
        *self.state.lock().unwrap() = State { work, count };
    }

    fn state(&self) -> State {
        *self.state.lock().unwrap()
    }
}

#[tokio::main]
async fn main() {
    let ended = Arc::new(Notify::new());
    let notify = Arc::clone(&ended);
    let _listener = add_listener(move |event| {
        if event.kind == EventKind::AbandonedWorkerSucceeded {
            notify.notify_one();
        }
    });

    let inventory = Arc::new(Inventory {
        state: Mutex::new(State {
            work: "not started",
            count: 0,
        }),
    });
    match Arc::clone(&inventory).stock().await {
        Err(error) if error.is_timed_out() => {
            println!("caller stopped waiting, work: {}", inventory.state().work);
        }
        other => println!("unexpected: {other:?}"),
    }

    ended.notified().await;
    let State { work, count } = inventory.state();
    println!("abandoned work finished later with {count}, work: {work}");
}
