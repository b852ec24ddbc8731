//! Rule 4: the nearest end names the cause.

use crate::support;
use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use support::{
    APART, ASYNC, EVERY_WAY, Gate, SOON, Way, limit, record, short, short_limit, until_fired,
};
use timeout_runtime::{CancelToken, Cause, Deadline, EventKind, Outcome, Timeout, TimeoutError};

const LONG: u64 = 60_000;

/// The cause of an ending without an answer.
fn cause<T, E: std::fmt::Debug>(outcome: &Outcome<T, E>) -> Option<Cause> {
    outcome.timeout_error().map(TimeoutError::cause)
}

#[test]
fn a_calls_own_limit_is_a_time_out() {
    for way in EVERY_WAY {
        let recorder = record("nearest_end::own");
        let outcome = way.run(&limit("nearest_end::own", short()), |token| {
            until_fired(&token)
        });
        let Outcome::TimedOut(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert!(error.is_timed_out() && !error.is_deadline_exceeded() && !error.is_cancelled());
        assert_eq!(error.name(), "nearest_end::own");
        assert_eq!(error.limit(), Some(short_limit()));
        assert!(error.was_started());
        assert_eq!(recorder.wait_for(2)[0], EventKind::TimedOut, "{way:?}");
    }
}

/// Runs a call inside another one, which waits for it; what each ended with.
fn nested(outer: (Way, &Timeout), inner: (Way, &Timeout)) -> (Option<Cause>, Option<Cause>) {
    let (sender, inside) = mpsc::channel();
    let (inner_way, inner) = (inner.0, inner.1.clone());
    let outcome = outer.0.run(outer.1, move |_| {
        let outcome = inner_way.run(&inner, |token| until_fired(&token));
        sender.send(cause(&outcome)).unwrap();
        outcome.into_result()
    });
    (cause(&outcome), inside.recv_timeout(SOON).unwrap())
}

#[test]
fn an_inherited_limit_exceeds_the_deadline_inside_and_times_out_outside() {
    let (outer, inner) = (
        limit("nearest_end::outer", short()),
        limit("nearest_end::inner", LONG),
    );
    for outer_way in EVERY_WAY {
        for inner_way in EVERY_WAY {
            assert_eq!(
                nested((outer_way, &outer), (inner_way, &inner)),
                (Some(Cause::TimedOut), Some(Cause::DeadlineExceeded)),
                "{inner_way:?} in {outer_way:?}"
            );
        }
    }
}

#[test]
fn a_shorter_limit_inside_is_a_time_out_inside_and_a_failure_outside() {
    let (outer, inner) = (
        limit("nearest_end::outer", LONG),
        limit("nearest_end::inner", short()),
    );
    for outer_way in EVERY_WAY {
        for inner_way in EVERY_WAY {
            assert_eq!(
                nested((outer_way, &outer), (inner_way, &inner)),
                (None, Some(Cause::TimedOut)),
                "{inner_way:?} in {outer_way:?}"
            );
        }
    }
}

/// Virtual time stands still between two polls, so that both limits end at the very same instant.
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
            outcome.into_result()
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
            until_fired(&token)
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
            until_fired(&token)
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
fn linking_a_token_takes_over_its_deadline() {
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

/// Whether the deadline of the current call is that of `token`, whichever clock each was read from.
fn is_current(token: &CancelToken) -> bool {
    let before = token.remaining();
    let current = Deadline::current().remaining();
    current <= before && token.remaining() <= current && current.is_some()
}

/// The grace of a call inside does not keep the caller past the end of the call around it.
#[test]
fn the_grace_of_a_call_inside_ends_with_the_call_around() {
    for way in APART {
        let gate = Gate::new();
        let held = gate.clone();
        let (sender, inside) = mpsc::channel();
        let outer = Way::SyncInline.run(&limit("nearest_end::around", 4 * short()), move |_| {
            let inner = limit("nearest_end::graceful", 2 * short()).with_grace(SOON * 3);
            let outcome = way.run(&inner, move |_| {
                held.wait();
                Ok::<_, TimeoutError>(())
            });
            sender.send((cause(&outcome), held_up(&outcome))).unwrap();
            outcome.into_result()
        });
        assert_eq!(cause(&outer), Some(Cause::TimedOut), "{way:?}");
        let (inner, elapsed) = inside.recv().unwrap();
        assert_eq!(inner, Some(Cause::TimedOut), "{way:?}");
        assert!(elapsed < SOON, "{way:?}: {elapsed:?}");
        gate.open();
    }
}

fn held_up<T, E>(outcome: &Outcome<T, E>) -> Duration {
    outcome
        .timeout_error()
        .map_or(Duration::ZERO, TimeoutError::elapsed)
}

/// What runs while the future is made belongs to the call as well.
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
        until_fired(&cancel_token)
    }
}

/// A limit is a deadline to those who only share the token.
#[test]
fn a_time_out_turns_into_a_deadline_where_a_token_enters_another_call() {
    for way in EVERY_WAY {
        let (running, started) = mpsc::channel();
        let outcome = Way::SyncWorker.run(&limit("nearest_end::giver", short()), move |token| {
            running.send(token.clone()).unwrap();
            until_fired(&token)
        });
        let expired = started.recv().unwrap();
        assert_eq!(cause(&outcome), Some(Cause::TimedOut));
        let refused = given::call(way, expired, Gate::new()).unwrap_err();
        assert_eq!(refused.cause(), Cause::DeadlineExceeded, "{way:?}");
        assert!(!refused.was_started(), "{way:?}");
    }
}

#[test]
fn the_deadline_of_a_token_given_along_ends_a_call_that_runs() {
    for way in EVERY_WAY {
        let recorder = record("nearest_end::given");
        let (sender, kept) = mpsc::channel();
        let finish = Gate::new();
        let held = finish.clone();
        let giver = std::thread::spawn(move || {
            Way::SyncWorker.run(&limit("nearest_end::lender", 500), move |token| {
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
        assert!(error.was_started(), "{way:?}");
        finish.open();
        assert_eq!(cause(&giver.join().unwrap()), Some(Cause::TimedOut));
        assert_eq!(
            recorder.wait_for(2)[0],
            EventKind::DeadlineExceeded,
            "{way:?}"
        );
    }
}
