//! Models of races between listeners and events: all orders, or random orders.

use super::*;
use crate::event::{CallId, EventKind};
use crate::sync::model_env;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, SystemTime};

#[cfg(timeout_loom)]
use loom::thread::spawn;
#[cfg(timeout_shuttle)]
use shuttle::thread::spawn;

/// Enough for all orders of two threads.
const PREEMPTIONS: usize = 5;

type Count = Arc<std::sync::atomic::AtomicUsize>;

/// Emits an event called `name`, as a call does.
fn emit(name: &'static str) {
    if has_listeners(None) {
        tell(
            None,
            &Event {
                timestamp: SystemTime::UNIX_EPOCH,
                call: CallId::fresh(),
                name,
                worker: None,
                elapsed: Duration::ZERO,
                limit: None,
                kind: EventKind::Succeeded,
            },
        );
    }
}

/// Registers a listener that counts the events called `name`.
fn count(name: &'static str) -> (Count, Registration) {
    let count = Count::default();
    let handle = add_listener({
        let count = Arc::clone(&count);
        move |event| {
            if event.name == name {
                count.fetch_add(1, SeqCst);
            }
        }
    });
    (count, handle)
}

/// Registers and removes a listener, as code inside a listener may do.
fn reenter() {
    drop(add_listener(|_| {}));
}

struct Reenters(Count);

impl Drop for Reenters {
    fn drop(&mut self) {
        reenter();
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_listener_receives_an_event_once_while_others_are_added_and_removed() {
    model_env::check(PREEMPTIONS, || {
        let (received, _handle) = count("event");
        let others = spawn(|| {
            let (received, handle) = count("event");
            drop(handle);
            assert!(received.load(SeqCst) <= 1);
        });
        emit("event");
        assert_eq!(received.load(SeqCst), 1);
        others.join().unwrap();
    });
}

#[test]
fn two_listeners_added_concurrently_both_receive_the_next_event() {
    model_env::check(PREEMPTIONS, || {
        let other = spawn(|| count("event"));
        let (one, _handle) = count("event");
        let (two, handle) = other.join().unwrap();
        emit("event");
        assert_eq!((one.load(SeqCst), two.load(SeqCst)), (1, 1));
        drop(handle);
        emit("event");
        assert_eq!((one.load(SeqCst), two.load(SeqCst)), (2, 1));
    });
}

#[test]
fn two_listeners_removed_concurrently_leave_no_listener() {
    model_env::check(PREEMPTIONS, || {
        let ((_, one), (_, two)) = (count("event"), count("event"));
        let other = spawn(|| drop(one));
        drop(two);
        other.join().unwrap();
        assert!(!has_listeners(None));
    });
}

#[test]
fn a_removed_listener_receives_no_new_event() {
    model_env::check(PREEMPTIONS, || {
        let (received, handle) = count("new");
        let other = spawn(|| emit("old"));
        drop(handle);
        emit("new");
        other.join().unwrap();
        assert_eq!(received.load(SeqCst), 0);
    });
}

#[test]
fn a_listener_is_called_and_dropped_outside_all_locks_and_dropped_once() {
    model_env::check(PREEMPTIONS, || {
        let dropped = Count::default();
        let handle = {
            let held = Reenters(Arc::clone(&dropped));
            add_listener(move |_| {
                let _ = &held;
                reenter();
            })
        };
        let other = spawn(|| emit("event"));
        drop(handle);
        other.join().unwrap();
        assert_eq!(dropped.load(SeqCst), 1);
    });
}
