//! An upstream token ends the wait like a deadline.

use crate::support;
use std::error::Error;
use std::future::pending;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use support::{ABANDONING, EVERY_WAY, Gate, LONG, Way, in_runtime, limit, record, until_cancelled};
use timeout_runtime::{CancelToken, Cause, EventKind, Failure, Outcome, TimeoutError};

const GRACE: Duration = Duration::from_secs(60);

/// Cancels, on another thread, each token that is sent to it.
fn canceller() -> mpsc::Sender<CancelToken> {
    let (sender, receiver) = mpsc::channel::<CancelToken>();
    thread::spawn(move || receiver.into_iter().for_each(|token| token.cancel()));
    sender
}

#[test]
fn cancelling_a_clone_of_the_token_ends_the_call() {
    for way in EVERY_WAY {
        let recorder = record("upstream::clone");
        let cancel = canceller();
        let outcome = way.run(&limit("upstream::clone", LONG), move |token| {
            cancel.send(token.clone()).unwrap();
            until_cancelled(&token)
        });
        let Outcome::Cancelled(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert_eq!(error.cause(), Cause::Cancelled, "{way:?}");
        assert_eq!(recorder.wait_for(2)[0], EventKind::Cancelled, "{way:?}");
    }
}

/// A cancelled caller used to wait for its deadline.
#[test]
fn a_cancelled_caller_does_not_wait_for_an_abandoned_operation() {
    for way in ABANDONING {
        let gate = Gate::new();
        let held = gate.clone();
        let cancel = canceller();
        let outcome = way.run(&limit("upstream::runs_on", LONG), move |token| {
            cancel.send(token).unwrap();
            held.wait();
            Ok::<_, TimeoutError>(7)
        });
        assert!(
            matches!(outcome, Outcome::Cancelled(_)),
            "{way:?}: {outcome:?}"
        );
        assert!(!gate.is_open());
        gate.open();
    }
}

#[test]
fn a_cancelled_inline_future_is_dropped() {
    let cancel = canceller();
    let timeout = limit("upstream::in_place", LONG);
    let outcome = in_runtime(Way::AsyncInline.start(&timeout, move |token| {
        cancel.send(token).unwrap();
        pending::<Result<(), TimeoutError>>()
    }));
    assert!(matches!(outcome, Outcome::Cancelled(_)), "{outcome:?}");
}

#[test]
fn a_cancelled_sync_inline_call_ends_when_its_operation_returns() {
    let timeout = limit("upstream::returns", LONG);
    let success = Way::SyncInline.run(&timeout, |token| {
        token.cancel();
        Ok::<_, TimeoutError>(7)
    });
    assert!(matches!(success, Outcome::Success(7)), "{success:?}");
    let error = Way::SyncInline.run(&timeout, |token| {
        token.cancel();
        Err::<(), _>("stopped")
    });
    assert!(matches!(error, Outcome::Cancelled(_)), "{error:?}");
}

#[test]
fn within_the_grace_a_success_counts_and_an_error_is_cancelled() {
    for way in EVERY_WAY {
        let timeout = limit("upstream::grace", LONG).with_grace(GRACE);
        for succeeds in [true, false] {
            let recorder = record("upstream::grace");
            let cancel = canceller();
            let outcome = way.run(&timeout, move |token| {
                cancel.send(token.clone()).unwrap();
                until_cancelled(&token).or(if succeeds { Ok(7) } else { Err("stopped") })
            });
            if succeeds {
                assert!(
                    matches!(outcome, Outcome::Success(7)),
                    "{way:?}: {outcome:?}"
                );
                assert_eq!(recorder.kinds(), [EventKind::Succeeded], "{way:?}");
            } else {
                assert!(
                    matches!(outcome, Outcome::Cancelled(_)),
                    "{way:?}: {outcome:?}"
                );
                assert_eq!(
                    recorder.wait_for(2),
                    [
                        EventKind::Cancelled,
                        EventKind::AbandonedWorkerStopped(Failure::Error("\"stopped\"".into()))
                    ],
                    "{way:?}"
                );
            }
        }
    }
}

#[test]
fn a_cancelled_caller_waits_at_most_for_the_grace() {
    const GRACE: Duration = Duration::from_millis(30);
    for way in ABANDONING {
        let gate = Gate::new();
        let held = gate.clone();
        let timeout = limit("upstream::at_most", LONG).with_grace(GRACE);
        let outcome = way.run(&timeout, move |token| {
            token.cancel();
            held.wait();
            Ok::<_, TimeoutError>(7)
        });
        let Outcome::Cancelled(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert!(error.elapsed() >= GRACE, "{way:?}");
        gate.open();
    }
}

/// The grace starts at the cancellation, so the caller does not wait for limit plus grace.
#[tokio::test(start_paused = true)]
async fn the_grace_starts_at_the_cancellation() {
    for way in [Way::AsyncInline, Way::AsyncTask] {
        let timeout = limit("upstream::virtual", 100).with_grace(Duration::from_millis(70));
        let call = way.start(&timeout, |token| async move {
            tokio::time::sleep(Duration::from_millis(40)).await;
            token.cancel();
            pending::<Result<(), TimeoutError>>().await
        });
        let Outcome::Cancelled(error) = call.await else {
            panic!("{way:?} did not end as cancelled");
        };
        let elapsed = error.elapsed();
        assert!(
            (Duration::from_millis(110)..Duration::from_millis(115)).contains(&elapsed),
            "{way:?}: {elapsed:?}"
        );
    }
}

annotated! {
    mod given, [name = "upstream::given", secs = 600], (cancel_token: CancelToken, inside: mpsc::Sender<CancelToken>)
    -> Result<u32, TimeoutError> {
        inside.send(cancel_token.clone()).unwrap();
        until_cancelled(&cancel_token)
    }
}

#[test]
fn an_upstream_token_ends_the_call() {
    for way in EVERY_WAY {
        let recorder = record("upstream::given");
        let request = CancelToken::new();
        let (inside, running) = mpsc::channel();
        let caller = {
            let request = request.clone();
            thread::spawn(move || given::call(way, request, inside))
        };
        let call_token = running.recv_timeout(support::SOON).unwrap();
        request.cancel_with("shutting down");
        let error = caller.join().unwrap().unwrap_err();
        assert!(error.is_cancelled(), "{way:?}: {error:?}");
        assert_eq!(
            error.source().map(ToString::to_string).as_deref(),
            Some("shutting down"),
            "{way:?}"
        );
        assert_eq!(call_token.cause(), Some(Cause::Cancelled), "{way:?}");
        assert_eq!(recorder.wait_for(2)[0], EventKind::Cancelled, "{way:?}");
    }
}

/// A call's own token is linked one way only.
#[test]
fn cancelling_the_calls_token_does_not_cancel_the_callers_token() {
    for way in EVERY_WAY {
        let recorder = record("upstream::given");
        let request = CancelToken::new();
        let (inside, running) = mpsc::channel();
        let caller = {
            let request = request.clone();
            thread::spawn(move || given::call(way, request, inside))
        };
        running.recv_timeout(support::SOON).unwrap().cancel();
        assert!(caller.join().unwrap().unwrap_err().is_cancelled());
        assert!(!request.is_cancelled(), "{way:?}");
        assert_eq!(recorder.wait_for(2)[0], EventKind::Cancelled, "{way:?}");
    }
}
