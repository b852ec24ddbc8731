//! An abandoned operation has stopped if it failed after it had received the error of its token.
//! Otherwise it has failed.

use crate::panics::record_panics;
use crate::support::{
    self, EVERY_WAY, Gate, LONG, SOON, Way, limit, past_short, record, short, until_cancelled,
    until_past,
};
use std::sync::mpsc;
use std::thread;

use timeout_runtime::{
    CallContext, CancelToken, Event, EventKind, Failure, Outcome, TimeoutError, check, timeout,
};

/// The late event of an operation that runs until its limit has passed. `release` opens after the
/// outcome.
fn late_event(
    way: Way,
    release: &Gate,
    op: impl FnOnce(&CancelToken) -> Result<(), &'static str> + Send + 'static,
) -> Event<'static> {
    let (sender, events) = mpsc::channel();
    let policy = limit("stopped::late", short()).with_listener(move |event| {
        let _ = sender.send(event.clone().into_owned());
    });
    let outcome = way.run(&policy, move |token| op(&token));
    assert!(
        matches!(outcome, Outcome::TimedOut(_)),
        "{way:?}: {outcome:?}"
    );
    release.open();
    let next = || events.recv_timeout(SOON).expect("there are two events");
    assert_eq!(next().kind, EventKind::TimedOut, "{way:?}");
    next()
}

/// The kind of the late event of an operation that waits for its cancellation.
fn late(
    way: Way,
    op: impl FnOnce(&CancelToken) -> Result<(), &'static str> + Send + 'static,
) -> EventKind<'static> {
    late_event(way, &Gate::new(), op).kind
}

fn stopped(text: &str) -> EventKind<'static> {
    EventKind::AbandonedWorkerStopped(Failure::Error(format!("{text:?}").into()))
}

fn failed(text: &str) -> EventKind<'static> {
    EventKind::AbandonedWorkerFailed(Failure::Error(format!("{text:?}").into()))
}

/// Fails with `text` after an error of a token or of a call.
fn after<T>(error: Result<T, TimeoutError>, text: &'static str) -> Result<(), &'static str> {
    error.map(drop).expect_err("there is an error");
    Err(text)
}

/// The error of an obedient operation used to be reported as a failure.
#[test]
fn an_operation_that_converts_the_error_of_its_token_has_stopped() {
    for way in EVERY_WAY {
        let late = late(way, |token| after(until_cancelled(token), "converted"));
        assert_eq!(late, stopped("converted"), "{way:?}");
    }
}

/// All tokens below were cancelled with that of the call, so their errors are its error.
// Fails if only the token itself notes its error.
#[test]
fn the_error_of_a_token_below_is_that_of_the_call() {
    type Derive = fn(&CancelToken) -> CancelToken;
    let derive: [Derive; 3] = [
        CancelToken::child,
        |token| token.child().child(),
        |token| CancelToken::linked([&CancelToken::new(), &token.child(), token]),
    ];
    for way in EVERY_WAY {
        for (row, derive) in derive.into_iter().enumerate() {
            let late = late(way, move |token| {
                after(until_cancelled(&derive(token)), "below")
            });
            assert_eq!(late, stopped("below"), "{way:?}, {row}");
        }
    }
}

#[test]
fn a_check_without_a_token_receives_the_error_of_the_call() {
    for way in EVERY_WAY {
        let late = late(way, |token| {
            until_past(token);
            after(check(), "checked")
        });
        assert_eq!(late, stopped("checked"), "{way:?}");
    }
}

/// A call whose operation has no token of its own to check.
#[test]
fn a_check_in_a_call_without_a_token_receives_the_error_of_the_call() {
    #[timeout(name = "stopped::plain", limit = support::short_limit(), run = "inline")]
    fn plain() -> Result<(), TimeoutError> {
        thread::sleep(past_short());
        check()
    }

    let recorder = record("stopped::plain");
    assert!(plain().unwrap_err().is_timed_out());
    let late = &recorder.kinds()[1];
    assert!(
        matches!(late, EventKind::AbandonedWorkerStopped(_)),
        "{late:?}"
    );
}

/// The caller of a nested call notices the enclosing deadline, perhaps before the enclosing token
/// is cancelled.
// Fails if the end of a nested call is not noted above it.
#[test]
fn a_nested_call_that_ends_at_the_enclosing_deadline_stops_the_operation() {
    for way in EVERY_WAY {
        let release = Gate::new();
        let held = release.clone();
        let late = late_event(way, &release, move |_| {
            let nested = limit("stopped::nested", LONG).call(move |_| {
                held.wait();
                Ok::<_, TimeoutError>(())
            });
            assert!(
                nested
                    .as_ref()
                    .is_err_and(TimeoutError::is_deadline_exceeded)
            );
            after(nested, "nested")
        });
        assert_eq!(late.kind, stopped("nested"), "{way:?}");
    }
}

/// A call inside another one on the same thread has a token only if something needs it.
// Fails if only calls with a token note their end above them.
#[test]
fn a_nested_call_without_a_token_stops_the_operation() {
    #[timeout(name = "stopped::inner", secs = 60, run = "inline")]
    fn inner() -> Result<(), TimeoutError> {
        thread::sleep(past_short());
        Ok(())
    }

    #[timeout(name = "stopped::outer", limit = support::short_limit(), run = "inline")]
    fn outer() -> Result<(), TimeoutError> {
        inner()
    }

    let recorder = record("stopped::outer");
    assert!(outer().unwrap_err().is_timed_out());
    let late = &recorder.kinds()[1];
    assert!(
        matches!(late, EventKind::AbandonedWorkerStopped(_)),
        "{late:?}"
    );
}

// Fails if the refusal of a nested call is not noted above it.
#[test]
fn a_nested_call_that_is_not_started_stops_the_operation() {
    for way in EVERY_WAY {
        let late = late(way, |token| {
            until_past(token);
            let nested = limit("stopped::refused", LONG).inline();
            after(nested.call(|_| Ok::<_, TimeoutError>(())), "refused")
        });
        assert_eq!(late, stopped("refused"), "{way:?}");
    }
}

#[test]
fn the_own_limit_of_a_nested_call_is_a_failure() {
    for way in EVERY_WAY {
        let late = late(way, |token| {
            let nested = limit("stopped::own_limit", 1).inline();
            let nested = nested.call(|token| until_cancelled(&token));
            assert!(nested.as_ref().is_err_and(TimeoutError::is_timed_out));
            until_past(token);
            after(nested, "own limit")
        });
        assert_eq!(late, failed("own limit"), "{way:?}");
    }
}

#[test]
fn an_error_without_the_error_of_the_token_is_a_failure() {
    for way in EVERY_WAY {
        let late = late(way, |token| {
            until_past(token);
            assert!(token.is_cancelled() && token.cause().is_some());
            Err("disk full")
        });
        assert_eq!(late, failed("disk full"), "{way:?}");
    }
}

#[test]
fn the_error_of_another_token_is_a_failure() {
    for way in EVERY_WAY {
        let late = late(way, |token| {
            let (child, other) = (token.child(), CancelToken::new());
            child.cancel();
            other.cancel();
            assert!(child.check().is_err());
            let context = CallContext::detached().with_token(&other);
            let nested = limit("stopped::other", LONG).inline();
            let refused = context.run(|| nested.call(|_| Ok::<_, TimeoutError>(())));
            until_past(token);
            after(refused.and(other.check()), "another token")
        });
        assert_eq!(late, failed("another token"), "{way:?}");
    }
}

#[test]
fn a_panic_is_a_failure_after_the_error_of_the_token_too() {
    record_panics();
    for way in support::ABANDONING {
        let release = Gate::new();
        let held = release.clone();
        let late = late_event(way, &release, move |token| {
            let error = until_cancelled(token).unwrap_err();
            // A panic counts as long as the caller waits.
            held.wait();
            panic!("wanted: {}", error.name());
        });
        let panic = Failure::Panic("wanted: stopped::late".into());
        assert_eq!(
            late.kind,
            EventKind::AbandonedWorkerFailed(panic),
            "{way:?}"
        );
    }
}

/// `None` stands for an error there.
#[test]
fn an_operation_that_returns_none_after_the_error_of_its_token_has_stopped() {
    #[timeout(name = "stopped::none", limit = support::short_limit(), run = "inline")]
    fn search() -> Option<u32> {
        until_cancelled(&cancel_token).ok()
    }

    let recorder = record("stopped::none");
    assert_eq!(search(), None);
    let none = Failure::Error("None".into());
    assert_eq!(recorder.kinds()[1], EventKind::AbandonedWorkerStopped(none));
}

/// With `cancel = false` the limit tells the operation nothing.
#[test]
fn an_operation_that_is_never_cancelled_fails_with_its_own_error() {
    for way in support::ABANDONING {
        let recorder = record("stopped::never_cancelled");
        let release = Gate::new();
        let held = release.clone();
        let timeout = limit("stopped::never_cancelled", short()).cancel_on_timeout(false);
        let outcome = way.run(&timeout, move |token| {
            held.wait();
            token.check().map_err(|_| "cancelled")?;
            Err::<(), _>("disk full")
        });
        assert!(
            matches!(outcome, Outcome::TimedOut(_)),
            "{way:?}: {outcome:?}"
        );
        release.open();
        assert_eq!(recorder.wait_for(2)[1], failed("disk full"), "{way:?}");
    }
}

#[test]
fn the_text_of_a_stop_has_no_failure() {
    let op = |token: &CancelToken| after(until_cancelled(token), "silent");
    let text = late_event(Way::SyncInline, &Gate::new(), op).to_string();
    assert!(text.contains(" abandoned, stopped after "), "{text}");
    assert!(!text.contains("silent"), "{text}");
}
