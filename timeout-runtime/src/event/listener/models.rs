//! What races among listeners, in every order, and in random ones.

use super::*;
use crate::event::{CallId, EventKind};
use crate::sync::model_env;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, SystemTime};

#[cfg(timeout_loom)]
use loom::thread::spawn;
#[cfg(timeout_shuttle)]
use shuttle::thread::spawn;

/// With two threads that is every order.
const PREEMPTIONS: usize = 5;

type Count = Arc<std::sync::atomic::AtomicUsize>;

/// Tells an event called `name`, as a call does.
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

/// Counts the events called `name`.
fn count(name: &'static str) -> (Count, ListenerHandle) {
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

/// Comes and goes, as a listener may have others do.
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
fn one_that_was_there_before_an_event_hears_it_once_whoever_comes_and_goes() {
    model_env::check(PREEMPTIONS, || {
        let (heard, _handle) = count("event");
        let others = spawn(|| {
            let (heard, handle) = count("event");
            drop(handle);
            assert!(heard.load(SeqCst) <= 1);
        });
        emit("event");
        assert_eq!(heard.load(SeqCst), 1);
        others.join().unwrap();
    });
}

#[test]
fn two_that_come_at_once_both_hear_what_follows() {
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
fn two_that_go_at_once_leave_nobody_who_would_hear() {
    model_env::check(PREEMPTIONS, || {
        let ((_, one), (_, two)) = (count("event"), count("event"));
        let other = spawn(|| drop(one));
        drop(two);
        other.join().unwrap();
        assert!(!has_listeners(None));
    });
}

#[test]
fn after_its_removal_a_listener_hears_no_new_event() {
    model_env::check(PREEMPTIONS, || {
        let (heard, handle) = count("new");
        let other = spawn(|| emit("old"));
        drop(handle);
        emit("new");
        other.join().unwrap();
        assert_eq!(heard.load(SeqCst), 0);
    });
}

#[test]
fn a_listener_is_called_and_dropped_under_no_lock_and_dropped_once() {
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
