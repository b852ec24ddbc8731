//! A token fires at its deadline whether or not anybody waits for it.

#[path = "support/crowd.rs"]
mod crowd;
mod support;

use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::Duration;

use support::{EVERY_WAY, Gate, Way, eventually, limit};
use timeout_runtime::{CallStatus, CancelToken, Cause, Outcome, TimeoutError};

/// Begins to wait for `token`, and gives up.
fn wait_in_vain(token: &CancelToken) {
    let waits = pin!(token.cancelled());
    let mut context = Context::from_waker(Waker::noop());
    assert!(waits.poll(&mut context).is_pending());
    assert!(token.on_cancel(|| unreachable!()).unregister());
    assert_eq!(token.wait_timeout(Duration::ZERO), None);
}

/// Guards against a timer that is stopped as soon as nobody listens: the token is looked at only later.
#[test]
fn a_token_that_nobody_waits_for_any_more_fires_every_way() {
    for way in EVERY_WAY {
        let (kept, keeper) = mpsc::channel();
        let release = Gate::new();
        let body = release.clone();
        let outcome = crowd::ends({
            let release = release.clone();
            move || {
                let opens = (!way.abandons()).then_some(release);
                way.run(&limit("unattended_tokens::kept", 200), move |token| {
                    wait_in_vain(&token);
                    kept.send(token).unwrap();
                    if let Some(release) = opens {
                        // The caller is held up until this returns.
                        std::thread::sleep(Duration::from_millis(250));
                        release.open();
                    }
                    body.wait();
                    Ok::<_, TimeoutError>(())
                })
            }
        });
        let expected = match way {
            // What a poll in place returns is never late.
            Way::AsyncInline => CallStatus::Ok,
            _ => CallStatus::TimedOut,
        };
        assert_eq!(outcome.status(), expected, "{way:?}");
        let token = keeper.recv().unwrap();
        assert!(token.is_cancelled(), "{way:?}");
        assert_eq!(token.cause(), Some(Cause::TimedOut), "{way:?}");
        release.open();
    }
}

/// Guards against a token that only turns when its caller looks: here the caller cannot, for the body blocks his thread.
#[test]
fn a_token_fires_while_its_caller_is_held_up() {
    let seen = limit("unattended_tokens::seen", 20).outcome_inline(|token| {
        wait_in_vain(&token);
        let below = token.child();
        eventually("the token fires", || token.is_cancelled());
        eventually("the token below fires", || below.is_cancelled());
        Ok::<_, TimeoutError>(())
    });
    assert!(matches!(seen, Outcome::TimedOut(_)), "{seen:?}");
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
