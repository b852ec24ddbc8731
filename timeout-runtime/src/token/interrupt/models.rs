//! Models of an interruption that meets the end of its work: all orders, or random orders.

use super::*;
use crate::sync::{model_env, thread};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

#[cfg(timeout_loom)]
use loom::thread::spawn;
#[cfg(timeout_shuttle)]
use shuttle::thread::spawn;

/// Enough for the canceller, the worker and one background thread.
const PREEMPTIONS: usize = 2;

/// Counts the stops, and notices one that runs beside the next use of the connection.
#[derive(Default)]
struct Connection {
    stops: AtomicUsize,
    is_reused: AtomicBool,
    was_hit: AtomicBool,
}

impl Connection {
    fn stop(&self) {
        self.was_hit.fetch_or(self.is_reused.load(SeqCst), SeqCst);
        thread::yield_now();
        self.was_hit.fetch_or(self.is_reused.load(SeqCst), SeqCst);
        self.stops.fetch_add(1, SeqCst);
    }
}

fn interrupt(token: &CancelToken, connection: &Arc<Connection>) -> Result<usize, TimeoutError> {
    let stop = {
        let connection = Arc::clone(connection);
        move || connection.stop()
    };
    let ended = token.interrupt_with(stop, || 7);
    connection.is_reused.store(true, SeqCst);
    ended
}

// Fails if `end` does not wait for a running function.
#[test]
fn no_stop_runs_after_its_work_has_returned() {
    model_env::check(PREEMPTIONS, || {
        let token = CancelToken::new();
        let connection = Arc::new(Connection::default());
        let canceller = spawn({
            let token = token.clone();
            move || token.cancel()
        });
        let ended = interrupt(&token, &connection);
        let stops = connection.stops.load(SeqCst);
        assert!(stops == 0 || ended.is_err(), "a value after {stops} stops");
        canceller.join().unwrap();
        assert!(!connection.was_hit.load(SeqCst));
    });
}

// Fails if a pause is not followed by another stop.
#[cfg(timeout_shuttle)]
#[test]
fn a_stop_that_was_lost_is_repeated_until_the_work_returns() {
    model_env::check(PREEMPTIONS, || {
        let token = CancelToken::new();
        let stops = Arc::new(AtomicUsize::new(0));
        let stop = {
            let stops = Arc::clone(&stops);
            move || stops.fetch_add(1, SeqCst)
        };
        let ended = token.interrupt_with(stop, || {
            token.cancel();
            while stops.load(SeqCst) < 3 {
                model_env::advance(FIRST_PAUSE);
                thread::yield_now();
            }
        });
        assert!(ended.is_err());
    });
}
