//! A token is cancelled at its deadline even if no code waits for it.

use crate::{concurrent, support};
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::Duration;

use support::{EVERY_WAY, Gate, Way, eventually, limit, short};
use timeout_runtime::{CallStatus, CancelToken, Cause, Outcome, TimeoutError};

/// Starts to wait for `token`, and gives up. Returns `false` if the token was cancelled too early.
fn waits_and_gives_up(token: &CancelToken) -> bool {
    let waits = pin!(token.cancelled());
    let mut context = Context::from_waker(Waker::noop());
    let is_pending = waits.poll(&mut context).is_pending();
    let took_back = token.on_cancel(|| {}).unregister();
    is_pending && took_back && token.wait_timeout(Duration::ZERO).is_none()
}

/// Repeats `attempt` with longer limits until an operation has started early enough.
fn with_time_enough(mut attempt: impl FnMut(u64) -> bool) {
    let mut limits = (0..10).map(|doubled| short() << doubled);
    assert!(limits.any(&mut attempt), "no operation started in time");
}

/// The timer used to stop with the last waiter; the token was cancelled only at a later check.
#[test]
fn a_token_without_waiters_is_cancelled_at_its_deadline() {
    for way in EVERY_WAY {
        with_time_enough(|ms| is_cancelled_unattended(way, ms));
    }
}

/// Returns `false` if the operation started too late.
fn is_cancelled_unattended(way: Way, ms: u64) -> bool {
    let (kept, keeper) = mpsc::channel();
    let release = Gate::new();
    let body = release.clone();
    let outcome = concurrent::must_return(move || {
        way.run(&limit("tokens_without_waiters::kept", ms), move |token| {
            let in_vain = waits_and_gives_up(&token);
            kept.send((token, in_vain)).unwrap();
            if way.abandons() {
                body.wait();
            } else {
                // The caller cannot continue before this returns.
                std::thread::sleep(Duration::from_millis(ms + 50));
            }
            Ok::<_, TimeoutError>(())
        })
    });
    release.open();
    let Ok((token, true)) = keeper.recv() else {
        return false;
    };
    let expected = match way {
        // A success returned by a poll in place is never late.
        Way::AsyncInline => CallStatus::Ok,
        _ => CallStatus::TimedOut,
    };
    assert_eq!(outcome.status(), expected, "{way:?}");
    assert!(token.is_cancelled(), "{way:?}");
    assert_eq!(token.cause(), Some(Cause::TimedOut), "{way:?}");
    true
}

/// The caller cannot check the token here, because the operation blocks its thread.
#[test]
fn a_token_is_cancelled_while_its_caller_is_blocked() {
    with_time_enough(|ms| {
        let mut in_vain = false;
        let seen = limit("tokens_without_waiters::seen", ms)
            .inline()
            .outcome(|token| {
                in_vain = waits_and_gives_up(&token);
                let below = token.child();
                eventually("the token is cancelled", || token.is_cancelled());
                eventually("the child is cancelled", || below.is_cancelled());
                Ok::<_, TimeoutError>(())
            });
        assert!(matches!(seen, Outcome::TimedOut(_)), "{seen:?}");
        in_vain
    });
}

/// A child's deadline must not depend on a waiter of its parent.
#[test]
fn a_child_is_cancelled_after_its_parent_was_dropped() {
    let (sender, receiver) = mpsc::channel();
    let outcome = limit("tokens_without_waiters::below", 20)
        .inline()
        .outcome(|token| {
            sender.send(token.child()).unwrap();
            drop(token);
            std::thread::sleep(Duration::from_millis(40));
            Ok::<_, TimeoutError>(())
        });
    assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
    let below = receiver.recv().unwrap();
    eventually("the child is cancelled", || below.is_cancelled());
}
