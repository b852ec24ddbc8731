//! A panic of an operation is resumed while the caller waits, and reported otherwise.

use crate::support;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use support::{
    ABANDONING, ASYNC, EVERY_WAY, Gate, LONG, Way, assert_timed_out, in_runtime, limit, poll_once,
    record, short, until_past,
};
use timeout_runtime::{EventKind, Failure, TimeoutError};

/// A payload type that only these tests use.
#[derive(Debug, PartialEq)]
struct Own(u32);

/// Returns the payload with which `call` panics.
#[track_caller]
fn panic_of<T: std::fmt::Debug>(call: impl FnOnce() -> T) -> Own {
    let payload = catch_unwind(AssertUnwindSafe(call)).expect_err("it did not panic");
    *payload.downcast().expect("the payload is `Own`")
}

#[test]
fn a_panic_in_time_is_resumed_with_its_own_payload() {
    for way in EVERY_WAY {
        let recorder = record("no_panic_is_lost::in_time");
        let timeout = limit("no_panic_is_lost::in_time", LONG);
        let payload = panic_of(|| way.run::<(), TimeoutError>(&timeout, |_| panic_any(Own(7))));
        assert_eq!(payload, Own(7), "{way:?}");
        assert!(
            matches!(recorder.kinds()[..], [EventKind::Failed(Failure::Panic(_))]),
            "{way:?}: {:?}",
            recorder.kinds()
        );
    }
}

#[test]
fn the_event_of_a_panic_has_its_message() {
    for way in EVERY_WAY {
        let recorder = record("no_panic_is_lost::text");
        let timeout = limit("no_panic_is_lost::text", LONG);
        let _ = catch_unwind(AssertUnwindSafe(|| {
            way.run::<(), TimeoutError>(&timeout, |_| panic!("out of {}", "paper"))
        }));
        assert_eq!(
            recorder.kinds(),
            [EventKind::Failed(Failure::Panic("out of paper".into()))],
            "{way:?}"
        );
    }
}

#[test]
fn a_panic_after_the_deadline_is_resumed_while_the_caller_waits() {
    for way in EVERY_WAY {
        let timeout = limit("no_panic_is_lost::grace", short()).with_grace(Duration::from_secs(60));
        let payload = panic_of(|| {
            way.run::<(), TimeoutError>(&timeout, |token| {
                until_past(&token);
                panic_any(Own(7))
            })
        });
        assert_eq!(payload, Own(7), "{way:?}");
    }
}

/// An inline operation runs on its caller's thread, so the caller gets every panic.
#[test]
fn an_inline_panic_is_resumed_however_late_it_is() {
    for way in [Way::SyncInline, Way::AsyncInline] {
        let timeout = limit("no_panic_is_lost::in_place", short());
        let payload = panic_of(|| {
            way.run::<(), TimeoutError>(&timeout, |token| {
                until_past(&token);
                panic_any(Own(7))
            })
        });
        assert_eq!(payload, Own(7), "{way:?}");
    }
}

#[test]
fn a_late_panic_is_reported_with_its_message() {
    for way in ABANDONING {
        let recorder = record("no_panic_is_lost::late");
        let gate = Gate::new();
        let held = gate.clone();
        let outcome =
            way.run::<(), TimeoutError>(&limit("no_panic_is_lost::late", short()), move |_| {
                held.wait();
                panic!("out of paper")
            });
        assert_timed_out(way, &outcome);
        gate.open();
        assert_eq!(
            recorder.wait_for(2),
            [
                EventKind::TimedOut,
                EventKind::AbandonedWorkerFailed(Failure::Panic("out of paper".into()))
            ],
            "{way:?}"
        );
    }
}

#[test]
fn a_panic_of_a_dropped_call_is_reported() {
    let runtime = support::runtime();
    let _inside = runtime.enter();
    for way in [Way::AsyncTask, Way::AsyncWorker] {
        let recorder = record("no_panic_is_lost::uncollected");
        let (go, published) = (Gate::new(), Gate::new());
        let held = go.clone();
        let timeout = limit("no_panic_is_lost::uncollected", LONG);
        let mut call = way.start::<(), TimeoutError, _>(&timeout, |_| async move {
            held.wait();
            panic!("out of paper")
        });
        assert!(poll_once(&mut call, &published).is_pending(), "{way:?}");
        go.open();
        published.wait();
        drop(call);
        assert_eq!(
            recorder.wait_for(2),
            [
                EventKind::Dropped,
                EventKind::AbandonedWorkerFailed(Failure::Panic("out of paper".into()))
            ],
            "{way:?}"
        );
    }
}

/// The eager part of a hand-written async operation used to run outside its call.
#[test]
fn a_panic_while_the_future_is_built_is_a_failure() {
    for way in ASYNC {
        let recorder = record("no_panic_is_lost::made");
        let timeout = limit("no_panic_is_lost::made", LONG);
        let payload = panic_of(|| {
            in_runtime(way.start(&timeout, |_| {
                if true {
                    panic_any(Own(7));
                }
                pending::<Result<(), TimeoutError>>()
            }))
        });
        assert_eq!(payload, Own(7), "{way:?}");
        assert!(
            matches!(recorder.kinds()[..], [EventKind::Failed(Failure::Panic(_))]),
            "{way:?}: {:?}",
            recorder.kinds()
        );
    }
}

/// A future whose destructor panics.
struct PanicsWhenDropped<F>(F);

impl<F: Future + Unpin> Future for PanicsWhenDropped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<F> Drop for PanicsWhenDropped<F> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic_any(Own(7));
        }
    }
}

/// One runner used to resume a destructor's panic that another one swallowed.
#[test]
fn a_panic_of_the_futures_destructor_is_a_panic_of_the_operation() {
    for way in ASYNC {
        let timeout = limit("no_panic_is_lost::destructor", LONG);
        let payload = panic_of(|| {
            in_runtime(way.start(&timeout, |_| {
                PanicsWhenDropped(std::future::ready(Ok::<_, TimeoutError>(7)))
            }))
        });
        assert_eq!(payload, Own(7), "{way:?}");
    }
}

#[test]
fn a_panic_of_a_destructor_at_the_limit_is_resumed() {
    let timeout = limit("no_panic_is_lost::cut_off", short());
    let payload = panic_of(|| {
        in_runtime(Way::AsyncInline.start(&timeout, |_| {
            PanicsWhenDropped(pending::<Result<(), TimeoutError>>())
        }))
    });
    assert_eq!(payload, Own(7));
}

#[test]
fn a_panic_in_a_later_poll_is_resumed() {
    for way in ASYNC {
        let timeout = limit("no_panic_is_lost::later", LONG);
        let payload = panic_of(|| {
            in_runtime(way.start(&timeout, |_| {
                let mut polls = 0;
                poll_fn::<Result<(), TimeoutError>, _>(move |context| {
                    polls += 1;
                    if polls == 3 {
                        panic_any(Own(7));
                    }
                    context.waker().wake_by_ref();
                    Poll::Pending
                })
            }))
        });
        assert_eq!(payload, Own(7), "{way:?}");
    }
}
