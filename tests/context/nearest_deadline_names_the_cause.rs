//! The nearest deadline or cancellation is the cause of an outcome.

use crate::concurrent::at_once;
use crate::support;
use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use support::{
    ABANDONING, ASYNC, EVERY_WAY, Gate, LONG, SOON, Way, limit, record, short, short_limit,
    until_cancelled,
};
use timeout_runtime::{
    CallStatus, CancelToken, Cause, Deadline, EventKind, Outcome, Timeout, TimeoutError,
};

/// Cause of an outcome without a result.
fn cause<T, E: std::fmt::Debug>(outcome: &Outcome<T, E>) -> Option<Cause> {
    outcome.timeout_error().map(TimeoutError::cause)
}

#[test]
fn a_calls_own_limit_is_a_timeout() {
    for way in EVERY_WAY {
        let recorder = record("nearest_end::own");
        let outcome = way.run(&limit("nearest_end::own", short()), |token| {
            until_cancelled(&token)
        });
        let Outcome::TimedOut(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert!(error.is_timed_out() && !error.is_deadline_exceeded() && !error.is_cancelled());
        assert_eq!(error.name(), "nearest_end::own");
        assert_eq!(error.limit(), Some(short_limit()));
        assert_ne!(error.status(), CallStatus::NotStarted);
        assert_eq!(recorder.wait_for(2)[0], EventKind::TimedOut, "{way:?}");
    }
}

/// Runs a nested call whose result the enclosing call returns. Returns both causes.
fn nested(outer: (Way, &Timeout), inner: (Way, &Timeout)) -> (Option<Cause>, Option<Cause>) {
    let (sender, inside) = mpsc::channel();
    let (inner_way, inner) = (inner.0, inner.1.clone());
    let outcome = outer.0.run(outer.1, move |_| {
        let outcome = inner_way.run(&inner, |token| until_cancelled(&token));
        sender.send(cause(&outcome)).unwrap();
        Result::from(outcome)
    });
    (cause(&outcome), inside.recv_timeout(SOON).unwrap())
}

#[test]
fn an_inherited_limit_is_a_deadline_for_the_nested_call_and_a_timeout_for_its_own() {
    let (outer, inner) = (
        limit("nearest_end::outer", short()),
        limit("nearest_end::inner", LONG),
    );
    at_once(EVERY_WAY, |outer_way| {
        for inner_way in EVERY_WAY {
            assert_eq!(
                nested((outer_way, &outer), (inner_way, &inner)),
                (Some(Cause::TimedOut), Some(Cause::DeadlineExceeded)),
                "{inner_way:?} in {outer_way:?}"
            );
        }
    });
}

#[test]
fn a_shorter_nested_limit_is_a_timeout_there_and_a_failure_of_the_enclosing_call() {
    let (outer, inner) = (
        limit("nearest_end::outer", LONG),
        limit("nearest_end::inner", short()),
    );
    at_once(EVERY_WAY, |outer_way| {
        for inner_way in EVERY_WAY {
            assert_eq!(
                nested((outer_way, &outer), (inner_way, &inner)),
                (None, Some(Cause::TimedOut)),
                "{inner_way:?} in {outer_way:?}"
            );
        }
    });
}

/// Paused time stands still between two polls, so both limits end at the same instant.
#[tokio::test(start_paused = true)]
async fn at_equal_instants_the_inherited_deadline_wins() {
    for way in [Way::AsyncInline, Way::AsyncTask] {
        let timeout = limit("nearest_end::equal", 50).with_grace(Duration::from_secs(60));
        let (sender, inside) = mpsc::channel();
        let inner = limit("nearest_end::equal", 50);
        let outer = way.start(&timeout, |_| async move {
            let outcome = inner
                .outcome_async(|_| pending::<Result<(), TimeoutError>>())
                .await;
            sender.send(cause(&outcome)).unwrap();
            Result::from(outcome)
        });
        assert_eq!(cause(&outer.await), Some(Cause::TimedOut), "{way:?}");
        assert_eq!(inside.recv(), Ok(Some(Cause::DeadlineExceeded)), "{way:?}");
    }
}

#[test]
fn a_cause_is_set_once() {
    for way in EVERY_WAY {
        let (sender, kept) = mpsc::channel();
        let outcome = way.run(&limit("nearest_end::once", short()), move |token| {
            sender.send(token.clone()).unwrap();
            until_cancelled(&token)
        });
        assert_eq!(cause(&outcome), Some(Cause::TimedOut), "{way:?}");
        let token = kept.recv().unwrap();
        token.cancel_with("too late");
        assert_eq!(token.cause(), Some(Cause::TimedOut), "{way:?}");
        let error = token.check().unwrap_err();
        assert!(error.is_timed_out(), "{way:?}");
        assert!(std::error::Error::source(&error).is_none(), "{way:?}");
    }
}

#[test]
fn a_cancellation_before_the_deadline_stays_a_cancellation() {
    for way in EVERY_WAY {
        let (sender, kept) = mpsc::channel();
        let outcome = way.run(&limit("nearest_end::before", 2_000), move |token| {
            sender.send(token.clone()).unwrap();
            token.cancel();
            Err::<(), _>("stopped")
        });
        assert_eq!(cause(&outcome), Some(Cause::Cancelled), "{way:?}");
        assert_eq!(
            kept.recv().unwrap().cause(),
            Some(Cause::Cancelled),
            "{way:?}"
        );
    }
}

#[test]
fn clones_children_and_linked_tokens_keep_the_cause() {
    for way in EVERY_WAY {
        let (sender, kept) = mpsc::channel();
        let outcome = way.run(&limit("nearest_end::kept", short()), move |token| {
            let other = CancelToken::new();
            let kept = [
                token.clone(),
                token.child(),
                token.child().child(),
                CancelToken::linked([&other, &token]),
            ];
            sender.send((kept, other)).unwrap();
            until_cancelled(&token)
        });
        assert_eq!(cause(&outcome), Some(Cause::TimedOut), "{way:?}");
        let (tokens, other) = kept.recv().unwrap();
        for token in &tokens {
            assert_eq!(token.cause(), Some(Cause::TimedOut), "{way:?}");
            assert_eq!(token.child().cause(), Some(Cause::TimedOut), "{way:?}");
        }
        assert!(!other.is_cancelled(), "{way:?}");
    }
}

#[test]
fn a_linked_token_inherits_the_deadline() {
    for way in EVERY_WAY {
        let outcome = way.run(&limit("nearest_end::linked", LONG), |token| {
            let linked = CancelToken::linked([&CancelToken::new(), &token]);
            Ok::<_, TimeoutError>((
                token.deadline(),
                linked.deadline(),
                linked.child().deadline(),
                is_current(&token),
            ))
        });
        let (own, linked, below, is_current) = outcome.success().unwrap();
        assert_ne!(own, Deadline::never(), "{way:?}");
        assert_eq!([linked, below], [own; 2], "{way:?}");
        assert!(is_current, "{way:?}");
    }
}

/// Whether the deadline of the current call is that of `token`, on either clock.
fn is_current(token: &CancelToken) -> bool {
    let before = token.remaining();
    let current = Deadline::current().remaining();
    current <= before && token.remaining() <= current && current.is_some()
}

/// The grace of a nested call must not delay the caller past the enclosing deadline.
#[test]
fn the_grace_of_a_nested_call_ends_with_the_enclosing_call() {
    for way in ABANDONING {
        let gate = Gate::new();
        let held = gate.clone();
        let (sender, inside) = mpsc::channel();
        let outer = Way::SyncInline.run(&limit("nearest_end::around", 4 * short()), move |_| {
            let inner = limit("nearest_end::graceful", 2 * short()).with_grace(SOON * 3);
            let outcome = way.run(&inner, move |_| {
                held.wait();
                Ok::<_, TimeoutError>(())
            });
            sender
                .send((cause(&outcome), elapsed_of(&outcome)))
                .unwrap();
            Result::from(outcome)
        });
        assert_eq!(cause(&outer), Some(Cause::TimedOut), "{way:?}");
        let (inner, elapsed) = inside.recv().unwrap();
        assert_eq!(inner, Some(Cause::TimedOut), "{way:?}");
        assert!(elapsed < SOON, "{way:?}: {elapsed:?}");
        gate.open();
    }
}

fn elapsed_of<T, E>(outcome: &Outcome<T, E>) -> Duration {
    outcome
        .timeout_error()
        .map_or(Duration::ZERO, TimeoutError::elapsed)
}

/// Code that runs while the future is built belongs to the call.
#[test]
fn the_eager_part_of_an_async_operation_is_inside_its_call() {
    for way in ASYNC {
        let outcome = support::in_runtime(way.start(&limit("nearest_end::eager", LONG), |token| {
            let found = is_current(&token);
            async move { Ok::<_, TimeoutError>(found) }
        }));
        assert_eq!(outcome.success(), Some(true), "{way:?}");
    }
}

annotated! {
    mod given, [name = "nearest_end::given", secs = 600], (cancel_token: CancelToken, started: Gate)
    -> Result<u32, TimeoutError> {
        started.open();
        until_cancelled(&cancel_token)
    }
}

/// The limit of one call is a deadline for another call that only shares its token.
#[test]
fn a_timeout_is_a_deadline_for_another_call_with_the_same_token() {
    let _alone = support::alone("nearest_end::given");
    for way in EVERY_WAY {
        let (running, started) = mpsc::channel();
        let outcome = Way::SyncWorker.run(&limit("nearest_end::giver", short()), move |token| {
            running.send(token.clone()).unwrap();
            until_cancelled(&token)
        });
        let expired = started.recv().unwrap();
        assert_eq!(cause(&outcome), Some(Cause::TimedOut));
        let refused = given::call(way, expired, Gate::new()).unwrap_err();
        assert_eq!(refused.cause(), Cause::DeadlineExceeded, "{way:?}");
        assert_eq!(refused.status(), CallStatus::NotStarted, "{way:?}");
    }
}

#[test]
fn the_deadline_of_a_passed_token_ends_a_running_call() {
    for way in EVERY_WAY {
        let recorder = record("nearest_end::given");
        let (sender, kept) = mpsc::channel();
        let finish = Gate::new();
        let held = finish.clone();
        let giver = std::thread::spawn(move || {
            Way::SyncWorker.run(&limit("nearest_end::lender", 5 * short()), move |token| {
                sender.send(token.clone()).unwrap();
                held.wait();
                Ok::<_, TimeoutError>(())
            })
        });
        let started = Gate::new();
        let error =
            given::call(way, kept.recv_timeout(SOON).unwrap(), started.clone()).unwrap_err();
        assert!(started.is_open(), "{way:?}");
        assert_eq!(error.cause(), Cause::DeadlineExceeded, "{way:?}");
        assert_ne!(error.status(), CallStatus::NotStarted, "{way:?}");
        finish.open();
        assert_eq!(cause(&giver.join().unwrap()), Some(Cause::TimedOut));
        assert_eq!(
            recorder.wait_for(2)[0],
            EventKind::DeadlineExceeded,
            "{way:?}"
        );
    }
}
