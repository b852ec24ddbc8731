//! Abandons an operation with `cancel = false`: the caller gets its error after one second, and the
//! operation runs for its two seconds. An event reports its late end.
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
    progress: &'static str,
    count: u32,
}

struct Inventory {
    state: Mutex<State>,
}

impl Inventory {
    /// The operation can outlive its call, so it owns its data.
    #[timeout(name = "inventory", secs = 1, cancel = false)]
    async fn stock(self: Arc<Self>) -> Result<u32, TimeoutError> {
        self.set("running", 0);
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.set("completed", 7);
        Ok(7)
    }

    fn set(&self, progress: &'static str, count: u32) {
        *self.state.lock().unwrap() = State { progress, count };
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
            progress: "not started",
            count: 0,
        }),
    });
    match Arc::clone(&inventory).stock().await {
        Err(error) if error.is_timed_out() => {
            let progress = inventory.state().progress;
            println!("the caller stopped waiting, operation: {progress}");
        }
        other => println!("unexpected: {other:?}"),
    }

    ended.notified().await;
    let State { progress, count } = inventory.state();
    println!("the operation returned {count} later, operation: {progress}");
}
