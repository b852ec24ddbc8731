//! Models of what can race on the links of a token, in every order.

use super::*;
use crate::CancelToken;
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::thread;
use std::task::Wake;

/// Counts wake-ups and calls.
#[derive(Default)]
struct Heard(AtomicUsize);

impl Wake for Heard {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
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

#[test]
fn loom_a_child_made_beside_a_cancel_is_cancelled() {
    loom::model(|| {
        let parent = CancelToken::new();
        let child = cancel_beside(&parent, || parent.child());
        assert!(child.is_cancelled());
    });
}

#[test]
fn loom_a_token_below_two_hears_both() {
    loom::model(|| {
        let (one, two) = (CancelToken::new(), CancelToken::new());
        let below = cancel_beside(&one, || CancelToken::linked([&one, &two]));
        assert!(below.is_cancelled() && !two.is_cancelled());
    });
}

#[test]
fn loom_a_child_dropped_beside_a_cancel_leaves_nothing() {
    loom::model(|| {
        let parent = CancelToken::new();
        let (dropped, kept) = (parent.child(), parent.child());
        cancel_beside(&parent, || drop(dropped));
        assert!(kept.is_cancelled());
        assert_eq!(parent.0.children(), 1);
    });
}

#[test]
fn loom_when_cancel_returns_all_below_read_cancelled() {
    loom::model(|| {
        let parent = CancelToken::new();
        let grandchild = parent.child().child();
        cancel_beside(&parent, || {
            parent.cancel();
            assert!(grandchild.is_cancelled(), "although another cancels too");
        });
    });
}

#[test]
fn loom_a_callback_added_beside_a_cancel_runs_once() {
    loom::model(|| {
        let token = CancelToken::new();
        let heard = Arc::new(Heard::default());
        let callback = {
            let heard = Arc::clone(&heard);
            move || heard.wake()
        };
        let registration = cancel_beside(&token, || token.on_cancel(callback));
        assert_eq!(heard.0.load(SeqCst), 1);
        assert!(!registration.unregister());
    });
}

#[test]
fn loom_a_callback_taken_back_beside_a_cancel_runs_or_is_prevented() {
    loom::model(|| {
        let token = CancelToken::new();
        let heard = Arc::new(Heard::default());
        let registration = token.on_cancel({
            let heard = Arc::clone(&heard);
            move || heard.wake()
        });
        let prevented = cancel_beside(&token, || registration.unregister());
        assert_eq!(heard.0.load(SeqCst), usize::from(!prevented));
    });
}

#[test]
fn loom_a_waiter_added_beside_a_cancel_is_woken_or_sees_it() {
    loom::model(|| {
        let token = CancelToken::new();
        let heard = Arc::new(Heard::default());
        let waiter = cancel_beside(&token, || token.0.add_waiter(Arc::clone(&heard).into()));
        assert_eq!(heard.0.load(SeqCst), usize::from(waiter.is_some()));
        assert!(token.is_cancelled());
    });
}

#[test]
fn loom_a_waiter_replaced_beside_a_cancel_is_woken_or_sees_it() {
    loom::model(|| {
        let token = CancelToken::new();
        let (before, after) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
        let key = token.0.add_waiter(Arc::clone(&before).into()).unwrap();
        let is_set = cancel_beside(&token, || {
            token.0.set_waiter(key, &Arc::clone(&after).into())
        });
        assert_eq!(after.0.load(SeqCst), usize::from(is_set));
        assert_eq!(before.0.load(SeqCst), usize::from(!is_set));
    });
}

#[test]
fn loom_an_owner_set_beside_a_cancel_is_woken_or_sees_it() {
    loom::model(|| {
        let token = CancelToken::new();
        let heard = Arc::new(Heard::default());
        let seen = cancel_beside(&token, || {
            token.0.set_caller_waker(&Arc::clone(&heard).into());
            token.is_cancelled()
        });
        assert!(seen || heard.0.load(SeqCst) == 1);
    });
}

#[test]
fn loom_two_causes_at_once_give_one_for_good() {
    loom::model(|| {
        let token = CancelToken::new();
        let child = token.child();
        let cause = cancel_beside(&token, || {
            token.0.propagate(Cause::TimedOut, None);
            token.cause()
        });
        assert!(cause.is_some());
        assert_eq!(token.cause(), cause);
        assert_eq!(child.cause(), cause);
    });
}
