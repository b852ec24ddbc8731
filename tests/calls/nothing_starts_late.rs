//! An operation does not start after its deadline or its cancellation.

use crate::concurrent::at_once;
use crate::support;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use support::{
    ASYNC, EVERY_WAY, Gate, Way, assert_timed_out, block_on, limit, poll_once, record, short,
    until_cancelled, until_past,
};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, EventKind, Outcome, Timeout, TimeoutError,
};

type Runs = Arc<AtomicUsize>;

annotated! {
    mod in_no_time, [name = "nothing_starts_late::zero", ms = limit], (limit: u64, runs: Runs) -> Result<u64, TimeoutError> {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok(limit)
    }
}

#[test]
fn a_limit_expression_of_zero_has_expired_on_entry() {
    for way in EVERY_WAY {
        let recorder = record("nothing_starts_late::zero");
        let runs = Runs::default();
        let error = in_no_time::call(way, 0, runs.clone()).unwrap_err();
        assert!(
            error.is_timed_out() && error.status() == CallStatus::NotStarted,
            "{way:?}"
        );
        assert_eq!(error.status(), CallStatus::NotStarted, "{way:?}");
        assert_eq!(runs.load(Ordering::SeqCst), 0, "{way:?}");
        assert_eq!(
            recorder.kinds(),
            [EventKind::NotStarted(Cause::TimedOut)],
            "{way:?}"
        );
    }
}

annotated! {
    mod given, [name = "nothing_starts_late::given", secs = 60], (cancel_token: CancelToken, runs: Runs)
    -> Result<(), TimeoutError> {
        runs.fetch_add(1, Ordering::SeqCst);
        cancel_token.check()
    }
}

#[test]
fn a_call_with_a_cancelled_token_does_not_start() {
    for way in EVERY_WAY {
        let recorder = record("nothing_starts_late::given");
        let (request, runs) = (CancelToken::new(), Runs::default());
        request.cancel();
        let error = given::call(way, request.child(), runs.clone()).unwrap_err();
        assert!(
            error.is_cancelled() && error.status() == CallStatus::NotStarted,
            "{way:?}"
        );
        assert_eq!(runs.load(Ordering::SeqCst), 0, "{way:?}");
        assert_eq!(
            recorder.kinds(),
            [EventKind::NotStarted(Cause::Cancelled)],
            "{way:?}"
        );
    }
}

/// Makes a nested call in a cancelled one, in the context that `context` makes of the current one.
fn in_cancelled_call(
    outer: &Timeout,
    outer_way: Way,
    inner_way: Way,
    context: fn(CallContext) -> CallContext,
) -> (Outcome<(), TimeoutError>, usize) {
    let (sender, inside) = std::sync::mpsc::channel();
    let _ = outer_way.run(outer, move |token| {
        if token.remaining_or(Duration::MAX) < support::SOON {
            until_past(&token);
        } else {
            token.cancel();
        }
        let runs = Runs::default();
        let counted = runs.clone();
        let outcome = context(CallContext::current()).run(|| {
            inner_way.run(&limit("nothing_starts_late::inner", 60_000), move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
                Ok::<_, TimeoutError>(())
            })
        });
        sender.send((outcome, runs.load(Ordering::SeqCst))).unwrap();
        Ok::<_, TimeoutError>(())
    });
    inside.recv_timeout(support::SOON).unwrap()
}

#[test]
fn a_call_nested_in_an_expired_call_does_not_start() {
    let outer = limit("nothing_starts_late::outer", short());
    at_once(EVERY_WAY, |outer_way| {
        for inner_way in EVERY_WAY {
            let (outcome, runs) =
                in_cancelled_call(&outer, outer_way, inner_way, |current| current);
            assert!(
                matches!(&outcome, Outcome::NotStarted(error) if error.is_deadline_exceeded()),
                "{inner_way:?} in {outer_way:?}: {outcome:?}"
            );
            assert_eq!(runs, 0, "{inner_way:?} in {outer_way:?}");
        }
    });
}

#[test]
fn a_call_nested_in_a_cancelled_call_does_not_start() {
    let outer = limit("nothing_starts_late::outer", 60_000);
    for outer_way in EVERY_WAY {
        for inner_way in EVERY_WAY {
            let (outcome, runs) =
                in_cancelled_call(&outer, outer_way, inner_way, |current| current);
            assert!(
                matches!(&outcome, Outcome::NotStarted(error) if error.is_cancelled()),
                "{inner_way:?} in {outer_way:?}: {outcome:?}"
            );
            assert_eq!(runs, 0, "{inner_way:?} in {outer_way:?}");
        }
    }
}

#[test]
fn cleanup_in_a_detached_context_starts_after_the_cancellation() {
    for outer in [
        limit("nothing_starts_late::outer", short()),
        limit("nothing_starts_late::outer", 60_000),
    ] {
        for way in EVERY_WAY {
            let (outcome, runs) = in_cancelled_call(&outer, way, way, |_| CallContext::detached());
            assert_eq!(outcome.status(), CallStatus::Ok, "{way:?}: {outcome:?}");
            assert_eq!(runs, 1, "{way:?}");
        }
    }
}

#[test]
fn the_error_names_the_detached_context_for_cleanup() {
    for limit_ms in [short(), 60_000] {
        let outer = limit("nothing_starts_late::outer", limit_ms);
        let way = Way::SyncInline;
        let (outcome, _) = in_cancelled_call(&outer, way, way, |current| current);
        let text = outcome.timeout_error().unwrap().to_string();
        assert!(text.contains("CallContext::detached()"), "{text}");
    }
}

/// A task that its runtime has not polled before the deadline is withdrawn.
#[test]
fn a_task_that_was_not_polled_before_the_deadline_never_runs() {
    let recorder = record("nothing_starts_late::withdrawn");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let runs = Runs::default();
    let counted = runs.clone();
    let outcome = {
        let _inside = runtime.enter();
        let timeout = limit("nothing_starts_late::withdrawn", short());
        block_on(timeout.as_task().outcome_async(|_| async move {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok::<_, TimeoutError>(())
        }))
    };
    assert!(
        matches!(&outcome, Outcome::NotStarted(error) if error.is_timed_out()),
        "{outcome:?}"
    );
    runtime.block_on(tokio::task::yield_now());
    drop(runtime);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(recorder.kinds(), [EventKind::NotStarted(Cause::TimedOut)]);
}

/// A call used to report a started operation if its runtime shut down before the first poll.
#[test]
fn a_task_that_is_dropped_before_its_first_poll_was_not_started() {
    let recorder = record("nothing_starts_late::destroyed");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let woken = Gate::new();
    let mut call = {
        let _inside = runtime.enter();
        let timeout = limit("nothing_starts_late::destroyed", 600_000);
        let mut call = Box::pin(
            timeout
                .as_task()
                .outcome_async(|_| async { Ok::<_, TimeoutError>(()) }),
        );
        assert!(poll_once(&mut call, &woken).is_pending());
        call
    };
    drop(runtime);
    woken.wait();
    let outcome = poll_once(&mut call, &woken);
    assert!(
        matches!(&outcome, Poll::Ready(Outcome::NotStarted(error)) if error.is_cancelled()),
        "{outcome:?}"
    );
    assert_eq!(recorder.kinds(), [EventKind::NotStarted(Cause::Cancelled)]);
}

#[test]
fn a_task_without_a_tokio_runtime_does_not_start() {
    let recorder = record("nothing_starts_late::no_runtime");
    let runs = Runs::default();
    let counted = runs.clone();
    let outcome = block_on(
        limit("nothing_starts_late::no_runtime", 60_000)
            .as_task()
            .outcome_async(|_| async move {
                counted.fetch_add(1, Ordering::SeqCst);
                Ok::<_, TimeoutError>(())
            }),
    );
    let Outcome::NotStarted(error) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.cause(), Cause::NoRuntime);
    assert_eq!(error.status(), CallStatus::NotStarted);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(recorder.kinds(), [EventKind::NotStarted(Cause::NoRuntime)]);
}

#[test]
fn inline_and_worker_calls_need_no_tokio_runtime() {
    let timeout = limit("nothing_starts_late::anywhere", short());
    for way in [Way::AsyncInline, Way::AsyncWorker] {
        let outcome = block_on(way.start(&timeout, |token| async move {
            token.cancelled().await;
            token.check()
        }));
        assert_timed_out(way, &outcome);
    }
    for way in [Way::SyncWorker, Way::SyncInline] {
        let outcome = way.run(&timeout, |token| until_cancelled(&token));
        assert_timed_out(way, &outcome);
    }
}

/// The limit starts at the first poll. A future that is dropped before it has made no call.
#[tokio::test(start_paused = true)]
async fn an_async_call_does_not_start_before_its_first_poll() {
    let recorder = record("nothing_starts_late::first_poll");
    for way in ASYNC {
        let timeout = limit("nothing_starts_late::first_poll", 20_000);
        let make = || way.start(&timeout, |_| async { Ok::<_, TimeoutError>(7) });
        let (dropped, call) = (make(), make());
        tokio::time::advance(Duration::from_secs(40)).await;
        drop(dropped);
        let outcome = call.await;
        assert!(
            matches!(outcome, Outcome::Success(7)),
            "{way:?}: {outcome:?}"
        );
    }
    assert_eq!(recorder.kinds(), vec![EventKind::Succeeded; 3]);
}
