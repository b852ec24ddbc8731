//! Models of an interruption that meets the end of its work: all orders, or random orders.

use super::*;
use crate::sync::model_env;
use crate::sync::thread::{self, Thread};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

#[cfg(timeout_loom)]
use loom::thread::spawn;
#[cfg(timeout_shuttle)]
use shuttle::thread::spawn;

/// Enough for the canceller, the worker and one background thread.
const PREEMPTIONS: usize = 2;

/// Counts the stops, and notices one that runs beside the next use of the connection, or on the
/// thread of its user.
struct Connection {
    begun: AtomicUsize,
    ended: AtomicUsize,
    is_reused: AtomicBool,
    was_hit: AtomicBool,
    user: Thread,
}

impl Connection {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            is_reused: AtomicBool::new(false),
            was_hit: AtomicBool::new(false),
            user: thread::current(),
        })
    }

    fn stop(&self) {
        self.begun.fetch_add(1, SeqCst);
        thread::yield_now();
        let is_without_work = self.is_reused.load(SeqCst) || self.user.is_current();
        // A panic would be caught.
        self.was_hit.fetch_or(is_without_work, SeqCst);
        self.ended.fetch_add(1, SeqCst);
        self.user.unpark();
    }

    /// Uses the connection again, beside any stop that is running.
    fn reuse(&self) {
        self.is_reused.store(true, SeqCst);
        while self.ended.load(SeqCst) < self.begun.load(SeqCst) {
            thread::park();
        }
        assert!(!self.was_hit.load(SeqCst));
    }
}

// Fails if `end` does not wait for a running function, or if a stop runs although the token was
// cancelled before the work began.
#[test]
fn no_stop_runs_after_its_work_has_returned() {
    model_env::check(PREEMPTIONS, || {
        let token = CancelToken::new();
        let connection = Connection::new();
        let canceller = spawn({
            let token = token.clone();
            move || token.cancel()
        });
        let stop = {
            let connection = Arc::clone(&connection);
            move || connection.stop()
        };
        let ended = token.interrupt_with(stop, thread::yield_now);
        let stops = connection.begun.load(SeqCst);
        assert!(stops == 0 || ended.is_err(), "a value after {stops} stops");
        connection.reuse();
        canceller.join().unwrap();
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
                model_env::advance(Duration::from_millis(1));
                thread::yield_now();
            }
        });
        assert!(ended.is_err());
    });
}
