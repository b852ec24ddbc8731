//! The options `upstream`, `deadline` and `inherit` decide which other events end a call.

#![deny(unused_variables)]

use crate::support;
use std::time::{Duration, Instant};

use support::{EVERY_WAY, Gate, Way, eventually, limit, record, short_limit, until_cancelled};
use timeout_runtime::{CallStatus, CancelToken, Cause, Deadline, EventKind, TimeoutError, timeout};

annotated! {
    mod below_two, [name = "attribute_upstream::below_two", secs = 60, upstream = [first, &second]],
    (first: CancelToken, second: Option<CancelToken>, started: Gate) -> Result<u32, TimeoutError> {
        started.open();
        until_cancelled(&cancel_token)
    }
}

annotated! {
    mod refused, [name = "attribute_upstream::refused", secs = 60, upstream = stop],
    (stop: &'static CancelToken) -> Result<u32, TimeoutError> {
        Ok(7)
    }
}

annotated! {
    mod shared, [name = "attribute_upstream::shared", secs = 60, deadline = deadline],
    (deadline: Deadline) -> Result<u32, TimeoutError> {
        until_cancelled(&cancel_token)
    }
}

annotated! {
    mod only_a_deadline, [name = "attribute_upstream::only_a_deadline", deadline = until],
    (until: Instant) -> Result<Deadline, TimeoutError> {
        Ok(cancel_token.deadline())
    }
}

annotated! {
    mod own_limit, [name = "attribute_upstream::own_limit", ms = 20, deadline = deadline],
    (deadline: Deadline) -> Result<u32, TimeoutError> {
        until_cancelled(&cancel_token)
    }
}

annotated! {
    mod detached, [name = "attribute_upstream::detached", secs = 60, inherit = false],
    () -> Result<u32, TimeoutError> {
        cancel_token.check().map(|()| 7)
    }
}

annotated! {
    mod attached, [name = "attribute_upstream::attached", secs = 60],
    () -> Result<u32, TimeoutError> {
        Ok(7)
    }
}

/// Tests every form in which the option accepts a token.
#[test]
fn any_upstream_token_stops_the_call() {
    for way in EVERY_WAY {
        for cancelled in 0..2 {
            let recorder = record("attribute_upstream::below_two");
            let tokens = [CancelToken::new(), CancelToken::new()];
            let [first, second] = tokens.clone();
            let started = Gate::new();
            let canceller = {
                let (token, started) = (tokens[cancelled].clone(), started.clone());
                std::thread::spawn(move || {
                    started.wait();
                    token.cancel_with("shutting down");
                })
            };
            let error = below_two::call(way, first, Some(second), started).unwrap_err();
            canceller.join().unwrap();
            assert_eq!(error.status(), CallStatus::UpstreamCancelled, "{way:?}");
            let reason = std::error::Error::source(&error).unwrap();
            assert_eq!(reason.to_string(), "shutting down", "{way:?}");
            // Late events of earlier calls may arrive in between.
            assert!(recorder.kinds().contains(&EventKind::Cancelled), "{way:?}");
            assert!(!tokens[1 - cancelled].is_cancelled(), "{way:?}");
        }
    }
}

#[test]
fn a_call_below_a_cancelled_token_is_not_started() {
    let cancelled: &CancelToken = Box::leak(Box::default());
    cancelled.cancel();
    for way in EVERY_WAY {
        let error = refused::call(way, cancelled).unwrap_err();
        assert_eq!(error.status(), CallStatus::NotStarted, "{way:?}");
        assert!(error.is_cancelled(), "{way:?}");
    }
}

#[test]
fn a_shared_deadline_that_passes_first_is_the_cause() {
    for way in EVERY_WAY {
        let deadline = Deadline::after(short_limit());
        let error = shared::call(way, deadline).unwrap_err();
        assert!(deadline.has_passed(), "{way:?}: early");
        assert!(error.is_deadline_exceeded(), "{way:?}: {error:?}");
    }
}

#[test]
fn the_own_limit_is_the_cause_if_it_passes_first() {
    for way in EVERY_WAY {
        let error = own_limit::call(way, Deadline::after(Duration::from_secs(60))).unwrap_err();
        assert!(error.is_timed_out(), "{way:?}: {error:?}");
    }
}

#[test]
fn a_call_with_a_passed_shared_deadline_does_not_start() {
    for way in EVERY_WAY {
        let error = shared::call(way, Deadline::at(Instant::now())).unwrap_err();
        assert_eq!(error.status(), CallStatus::NotStarted, "{way:?}");
        assert!(error.is_deadline_exceeded(), "{way:?}");
    }
}

#[test]
fn a_call_may_have_a_deadline_and_no_limit() {
    let until = Instant::now() + Duration::from_secs(60);
    for way in EVERY_WAY {
        let seen = only_a_deadline::call(way, until).unwrap();
        let left = seen.remaining().unwrap();
        assert!(left <= Duration::from_secs(60), "{way:?}: {left:?}");
        assert!(left > Duration::from_secs(30), "{way:?}: {left:?}");
    }
}

/// After the enclosing token is cancelled, only calls with `inherit = false` start.
#[test]
fn a_call_that_does_not_inherit_starts_in_a_cancelled_call() {
    for way in [Way::SyncWorker, Way::SyncInline, Way::AsyncWorker] {
        let outcome = limit("attribute_upstream::outer", 60_000).outcome(move |token| {
            token.cancel();
            eventually("the token is cancelled", || {
                token.cause() == Some(Cause::Cancelled)
            });
            let attached = attached::call(way).unwrap_err();
            assert_eq!(attached.status(), CallStatus::NotStarted, "{way:?}");
            assert_eq!(detached::call(way).unwrap(), 7, "{way:?}");
            Ok::<_, TimeoutError>(())
        });
        // A panic of an assertion in the operation is resumed here.
        assert!(!matches!(
            outcome.status(),
            CallStatus::Failed | CallStatus::NotStarted
        ));
    }
}

#[timeout(name = "attribute_upstream::used", ms = ms, upstream = stop)]
fn uses_its_arguments_in_options_alone(ms: u64, stop: CancelToken) -> Option<u32> {
    Some(7)
}

/// The compiler warned about an argument that only an option uses. The test is that this compiles.
#[test]
fn an_argument_that_only_an_option_uses_causes_no_warning() {
    assert_eq!(
        uses_its_arguments_in_options_alone(60_000, CancelToken::new()),
        Some(7)
    );
}
