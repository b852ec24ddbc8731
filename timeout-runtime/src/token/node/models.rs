//! Models of what can race on the links of a token, in every order.

use super::*;
use crate::CancelToken;
use crate::sync::model_env;
use crate::sync::thread::{self as ours, Thread};
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::thread;
use std::task::Wake;

/// Enough for the canceller, another thread and one background thread.
const PREEMPTIONS: usize = 2;

/// Counts wake-ups and calls, and unparks the thread that created it.
struct Wakes(AtomicUsize, Thread);

impl Default for Wakes {
    fn default() -> Self {
        Self(AtomicUsize::new(0), ours::current())
    }
}

impl Wakes {
    fn wait(&self) {
        while self.0.load(SeqCst) == 0 {
            ours::park();
        }
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
        self.1.unpark();
    }
}

/// Cancels `token` on another thread while `other` runs. Returns after both.
fn cancel_beside<T>(token: &CancelToken, other: impl FnOnce() -> T) -> T {
    let canceller = {
        let token = token.clone();
        thread::spawn(move || token.cancel())
    };
    let made = other();
    canceller.join().unwrap();
    made
}

// Fails if `link` does not read the parents after it has linked the child.
#[test]
fn loom_a_child_made_beside_a_cancel_is_cancelled() {
    model_env::check(PREEMPTIONS, || {
        let parent = CancelToken::new();
        let child = cancel_beside(&parent, || parent.child());
        assert!(child.is_cancelled());
    });
}

// Fails if `link` does not read the parents after it has linked the child.
#[test]
fn loom_a_token_linked_beside_a_cancel_is_cancelled() {
    model_env::check(PREEMPTIONS, || {
        let (one, two) = (CancelToken::new(), CancelToken::new());
        let below = cancel_beside(&one, || CancelToken::linked([&one, &two]));
        assert!(below.is_cancelled() && !two.is_cancelled());
    });
}

// Fails if a child does not unlink itself.
#[test]
fn loom_a_child_dropped_beside_a_cancel_leaves_no_link() {
    model_env::check(PREEMPTIONS, || {
        let parent = CancelToken::new();
        let (dropped, kept) = (parent.child(), parent.child());
        cancel_beside(&parent, || drop(dropped));
        assert!(kept.is_cancelled());
        assert_eq!(parent.0.children(), 1);
    });
}

// Fails if the second canceller returns before the first one is done.
#[test]
fn loom_all_descendants_are_cancelled_when_cancel_returns() {
    model_env::check(PREEMPTIONS, || {
        let parent = CancelToken::new();
        let grandchild = parent.child().child();
        cancel_beside(&parent, || {
            parent.cancel();
            assert!(grandchild.is_cancelled(), "although another cancels too");
        });
    });
}

// Fails if `add_callback` does not read the state.
#[test]
fn loom_a_callback_added_beside_a_cancel_runs_once() {
    model_env::check(PREEMPTIONS, || {
        let token = CancelToken::new();
        let wakes = Arc::new(Wakes::default());
        let callback = {
            let wakes = Arc::clone(&wakes);
            move || wakes.wake()
        };
        let registration = cancel_beside(&token, || token.on_cancel(callback));
        wakes.wait();
        assert!(!registration.unregister_and_wait());
        assert_eq!(wakes.0.load(SeqCst), 1);
    });
}

#[test]
fn loom_a_callback_unregistered_beside_a_cancel_has_run_or_never_runs() {
    model_env::check(PREEMPTIONS, || {
        let token = CancelToken::new();
        let wakes = Arc::new(Wakes::default());
        let registration = token.on_cancel({
            let wakes = Arc::clone(&wakes);
            move || wakes.wake()
        });
        let prevented = cancel_beside(&token, || registration.unregister_and_wait());
        assert_eq!(wakes.0.load(SeqCst), usize::from(!prevented));
    });
}

// Fails if `add_waiter` does not read the state.
#[test]
fn loom_a_waiter_added_beside_a_cancel_is_woken_or_sees_it() {
    model_env::check(PREEMPTIONS, || {
        let token = CancelToken::new();
        let wakes = Arc::new(Wakes::default());
        let waiter = cancel_beside(&token, || token.0.add_waiter(Arc::clone(&wakes).into()));
        assert_eq!(wakes.0.load(SeqCst), usize::from(waiter.is_some()));
        assert!(token.is_cancelled());
    });
}

// Fails if a waiter is stored after the cancellation.
#[test]
fn loom_a_waiter_replaced_beside_a_cancel_is_woken_or_sees_it() {
    model_env::check(PREEMPTIONS, || {
        let token = CancelToken::new();
        let (before, after) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
        let key = token.0.add_waiter(Arc::clone(&before).into()).unwrap();
        let is_set = cancel_beside(&token, || {
            token.0.set_waiter(key, &Arc::clone(&after).into())
        });
        assert_eq!(after.0.load(SeqCst), usize::from(is_set));
        assert_eq!(before.0.load(SeqCst), usize::from(!is_set));
    });
}

// Fails if a cancellation does not wake the caller.
#[test]
fn loom_a_caller_registered_beside_a_cancel_is_woken_or_sees_it() {
    model_env::check(PREEMPTIONS, || {
        let token = CancelToken::new();
        let wakes = Arc::new(Wakes::default());
        let seen = cancel_beside(&token, || {
            token.0.set_caller_waker(&Arc::clone(&wakes).into());
            token.is_cancelled()
        });
        assert!(seen || wakes.0.load(SeqCst) == 1);
    });
}

// Fails if the second cause overwrites the first one.
#[test]
fn loom_of_two_concurrent_causes_one_is_kept() {
    model_env::check(PREEMPTIONS, || {
        let token = CancelToken::new();
        let child = token.child();
        let cause = cancel_beside(&token, || {
            token.0.cancel(Cause::TimedOut, None);
            token.cause()
        });
        assert!(cause.is_some());
        assert_eq!(token.cause(), cause);
        assert_eq!(child.cause(), cause);
    });
}
