//! Models of a callback that runs while it is taken back: all orders, or random orders.

use super::*;
use crate::sync::model_env;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[cfg(timeout_loom)]
use loom::thread::spawn;
#[cfg(timeout_shuttle)]
use shuttle::thread::spawn;

/// Enough for all orders of two threads.
const PREEMPTIONS: usize = 5;

const BEFORE: usize = 0;
const INSIDE: usize = 1;
const AFTER: usize = 2;

// Fails if `run` sets the state to *over* before it calls the function.
#[test]
fn no_callback_runs_after_it_was_taken_back_with_a_wait() {
    model_env::check(PREEMPTIONS, || {
        let place = Arc::new(AtomicUsize::new(BEFORE));
        let callback = Callback::new({
            let place = Arc::clone(&place);
            move || {
                place.store(INSIDE, SeqCst);
                crate::sync::thread::yield_now();
                place.store(AFTER, SeqCst);
            }
        });
        let take_back = callback.downgrade();
        let runner = spawn(move || callback.run());
        let expected = if take_back.take_back_and_wait() {
            BEFORE
        } else {
            AFTER
        };
        assert_eq!(place.load(SeqCst), expected);
        runner.join().unwrap();
        assert_eq!(place.load(SeqCst), expected);
    });
}

#[test]
fn a_callback_that_takes_itself_back_does_not_wait_for_itself() {
    model_env::check(PREEMPTIONS, || {
        let own = Arc::new(std::sync::Mutex::new(None::<TakeBack>));
        let callback = Callback::new({
            let own = Arc::clone(&own);
            move || {
                let own = own.lock().unwrap().take().unwrap();
                assert!(!own.take_back_and_wait());
            }
        });
        *own.lock().unwrap() = Some(callback.downgrade());
        callback.run();
        assert!(own.lock().unwrap().is_none());
    });
}
