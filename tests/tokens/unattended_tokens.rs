//! A token fires at its deadline whether or not anybody waits for it.

use crate::{crowd, support};
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::Duration;

use support::{EVERY_WAY, Gate, Way, eventually, limit, short};
use timeout_runtime::{CallStatus, CancelToken, Cause, Outcome, TimeoutError};

/// Begins to wait for `token`, and gives up. Returns `false` if the token fired too early for that.
fn waits_in_vain(token: &CancelToken) -> bool {
    let waits = pin!(token.cancelled());
    let mut context = Context::from_waker(Waker::noop());
    let is_pending = waits.poll(&mut context).is_pending();
    let took_back = token.on_cancel(|| {}).unregister();
    is_pending && took_back && token.wait_timeout(Duration::ZERO).is_none()
}

/// Repeats `attempt` with longer and longer limits, until an operation started early enough.
fn with_time_enough(mut attempt: impl FnMut(u64) -> bool) {
    let mut limits = (0..10).map(|doubled| short() << doubled);
    assert!(limits.any(&mut attempt), "no operation started in time");
}

/// Guards against a timer that is stopped as soon as nobody listens: the token is looked at only later.
#[test]
fn a_token_that_nobody_waits_for_any_more_fires_every_way() {
    for way in EVERY_WAY {
        with_time_enough(|ms| fires_unattended(way, ms));
    }
}

/// `false` if the operation started too late.
fn fires_unattended(way: Way, ms: u64) -> bool {
    let (kept, keeper) = mpsc::channel();
    let release = Gate::new();
    let body = release.clone();
    let outcome = crowd::ends(move || {
        way.run(&limit("unattended_tokens::kept", ms), move |token| {
            let in_vain = waits_in_vain(&token);
            kept.send((token, in_vain)).unwrap();
            if way.abandons() {
                body.wait();
            } else {
                // The caller is held up until this returns.
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
        // What a poll in place returns is never late.
        Way::AsyncInline => CallStatus::Ok,
        _ => CallStatus::TimedOut,
    };
    assert_eq!(outcome.status(), expected, "{way:?}");
    assert!(token.is_cancelled(), "{way:?}");
    assert_eq!(token.cause(), Some(Cause::TimedOut), "{way:?}");
    true
}

/// Guards against a token that only turns when its caller looks: here the caller cannot, for the body blocks his thread.
#[test]
fn a_token_fires_while_its_caller_is_held_up() {
    with_time_enough(|ms| {
        let mut in_vain = false;
        let seen = limit("unattended_tokens::seen", ms).outcome_inline(|token| {
            in_vain = waits_in_vain(&token);
            let below = token.child();
            eventually("the token fires", || token.is_cancelled());
            eventually("the token below fires", || below.is_cancelled());
            Ok::<_, TimeoutError>(())
        });
        assert!(matches!(seen, Outcome::TimedOut(_)), "{seen:?}");
        in_vain
    });
}

/// Guards against children that hear of a deadline only if someone watches it above.
#[test]
fn a_token_below_fires_though_nobody_holds_the_one_above() {
    let (sender, receiver) = mpsc::channel();
    let outcome = limit("unattended_tokens::below", 20).outcome_inline(|token| {
        sender.send(token.child()).unwrap();
        drop(token);
        std::thread::sleep(Duration::from_millis(40));
        Ok::<_, TimeoutError>(())
    });
    assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
    let below = receiver.recv().unwrap();
    eventually("the token below fires", || below.is_cancelled());
}
