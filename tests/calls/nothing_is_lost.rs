//! Every result reaches the caller or is dropped and reported once, also when a runtime shuts down.

use crate::support;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use support::{
    ABANDONING, ASYNC, Drops, EVERY_WAY, Gate, LONG, TIMED, Way, assert_timed_out, block_on,
    eventually, limit, poll_once, record, short, until_past,
};
use timeout_runtime::{CallStatus, EventKind, Failure, Outcome, TimeoutError, workers};

#[test]
fn a_late_value_is_dropped_once_on_the_operations_thread() {
    for way in TIMED {
        let recorder = record("nothing_is_lost::late");
        let (returned, drops) = (Gate::new(), Drops::default());
        let (after, value) = (way.abandons().then(|| returned.clone()), drops.value());
        let outcome = way.run(&limit("nothing_is_lost::late", short()), move |token| {
            until_past(&token);
            if let Some(after) = after {
                after.wait();
            }
            Ok::<_, TimeoutError>(value)
        });
        assert_timed_out(way, &outcome);
        returned.open();
        assert_eq!(
            recorder.wait_for(2)[1],
            EventKind::AbandonedWorkerSucceeded,
            "{way:?}"
        );
        // The value is dropped before the report, so all drops are counted here.
        let threads = drops.threads();
        let [thread] = threads.as_slice() else {
            panic!("{way:?}: dropped on {threads:?}");
        };
        let prefix = match way {
            Way::SyncWorker | Way::AsyncWorker => "timeout-",
            Way::AsyncTask => "tokio-",
            Way::SyncInline | Way::AsyncInline => "nothing_is_lost::a_late_value",
        };
        assert!(thread.starts_with(prefix), "{way:?}: dropped on {thread}");
    }
}

#[test]
fn a_value_in_time_is_returned() {
    for way in EVERY_WAY {
        let drops = Drops::default();
        let value = drops.value();
        let outcome = way.run(&limit("nothing_is_lost::given", LONG), move |_| {
            Ok::<_, TimeoutError>(value)
        });
        assert_eq!(drops.count(), 0, "{way:?}");
        drop(outcome);
        assert_eq!(drops.count(), 1, "{way:?}");
    }
}

#[test]
fn a_late_error_is_reported_with_its_message() {
    for way in ABANDONING {
        let recorder = record("nothing_is_lost::late_error");
        let gate = Gate::new();
        let held = gate.clone();
        let _ = way.run(&limit("nothing_is_lost::late_error", short()), move |_| {
            held.wait();
            Err::<(), _>("disk full")
        });
        gate.open();
        assert_eq!(
            recorder.wait_for(2),
            [
                EventKind::TimedOut,
                EventKind::AbandonedWorkerFailed(Failure::Error("\"disk full\"".into()))
            ],
            "{way:?}"
        );
    }
}

/// The operation publishes its result, and the caller drops its call without polling it again.
#[test]
fn the_result_of_a_dropped_call_is_reported_and_dropped_once() {
    let runtime = support::runtime();
    let _inside = runtime.enter();
    for way in [Way::AsyncTask, Way::AsyncWorker] {
        let recorder = record("nothing_is_lost::uncollected");
        let (go, published, drops) = (Gate::new(), Gate::new(), Drops::default());
        let (held, value) = (go.clone(), drops.value());
        let mut call = way.start(
            &limit("nothing_is_lost::uncollected", LONG),
            |_| async move {
                held.wait();
                Ok::<_, TimeoutError>(value)
            },
        );
        assert!(poll_once(&mut call, &published).is_pending(), "{way:?}");
        go.open();
        published.wait();
        assert_eq!(drops.count(), 0, "{way:?}");
        drop(call);
        assert_eq!(drops.count(), 1, "{way:?}");
        assert_eq!(
            recorder.wait_for(2),
            [EventKind::Dropped, EventKind::AbandonedWorkerSucceeded],
            "{way:?}"
        );
    }
}

/// Each value is returned or dropped, and each dropped value is reported.
#[test]
fn every_value_is_returned_or_reported() {
    const ROUNDS: usize = 300;
    let recorder = record("nothing_is_lost::race");
    let (drops, made, mut given) = (Drops::default(), Arc::new(AtomicUsize::new(0)), 0);
    for round in 0..ROUNDS {
        let way = EVERY_WAY[round % EVERY_WAY.len()];
        let (drops, made) = (drops.clone(), made.clone());
        let outcome = way.run(&limit("nothing_is_lost::race", 1), move |token| {
            while token.remaining().is_some_and(|left| left.as_micros() > 20) {
                std::hint::spin_loop();
            }
            made.fetch_add(1, Ordering::SeqCst);
            Ok::<_, TimeoutError>(drops.value())
        });
        given += usize::from(outcome.status() == CallStatus::Ok);
    }
    eventually("nothing is abandoned", || {
        workers::abandoned()
            .iter()
            .all(|left| left.name != "nothing_is_lost::race")
    });
    let made = made.load(Ordering::SeqCst);
    assert_eq!(drops.count(), made);
    let count = |kind: &EventKind<'_>| recorder.kinds().iter().filter(|seen| *seen == kind).count();
    assert_eq!(count(&EventKind::Succeeded), given);
    assert_eq!(count(&EventKind::AbandonedWorkerSucceeded), made - given);
    let outcomes = recorder
        .kinds()
        .iter()
        .filter(|kind| !support::is_late(kind))
        .count();
    assert_eq!(outcomes, ROUNDS);
}

#[test]
fn a_call_is_cancelled_when_its_runtime_shuts_down() {
    let recorder = record("nothing_is_lost::shutdown");
    let runtime = support::runtime();
    let (running, woken, drops) = (Gate::new(), Gate::new(), Drops::default());
    let (started, value) = (running.clone(), drops.value());
    let mut call = {
        let _inside = runtime.enter();
        let mut call =
            Way::AsyncTask.start(&limit("nothing_is_lost::shutdown", LONG), |_| async move {
                started.open();
                pending::<()>().await;
                Ok::<_, TimeoutError>(value)
            });
        assert!(poll_once(&mut call, &woken).is_pending());
        call
    };
    running.wait();
    drop(runtime);
    woken.wait();
    let outcome = poll_once(&mut call, &Gate::new());
    assert!(
        matches!(&outcome, Poll::Ready(Outcome::Cancelled(_))),
        "{outcome:?}"
    );
    assert_eq!(drops.count(), 1);
    assert_eq!(recorder.kinds(), [EventKind::Cancelled]);
}

#[test]
fn an_abandoned_operation_is_reported_unfinished_when_its_runtime_shuts_down() {
    let recorder = record("nothing_is_lost::unfinished");
    let runtime = support::runtime();
    let timeout = limit("nothing_is_lost::unfinished", short());
    let outcome = runtime.block_on(
        timeout
            .as_task()
            .outcome_async(|_| pending::<Result<(), TimeoutError>>()),
    );
    assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
    drop(runtime);
    assert_eq!(
        recorder.wait_for(2),
        [
            EventKind::TimedOut,
            EventKind::AbandonedWorkerStopped(Failure::Unfinished)
        ]
    );
}

/// Dropping a call must cancel its token.
#[test]
fn a_dropped_call_cancels_its_token_and_reports_its_operation() {
    let runtime = support::runtime();
    let _inside = runtime.enter();
    for way in ASYNC {
        let recorder = record("nothing_is_lost::dropped");
        let (running, drops) = (Gate::new(), Drops::default());
        let (started, value) = (running.clone(), drops.value());
        let mut call = way.start(
            &limit("nothing_is_lost::dropped", LONG),
            |token| async move {
                started.open();
                token.cancelled().await;
                Ok::<_, TimeoutError>(value)
            },
        );
        assert!(poll_once(&mut call, &Gate::new()).is_pending(), "{way:?}");
        running.wait();
        drop(call);
        let late = usize::from(way.abandons());
        let events = recorder.wait_for(1 + late);
        assert_eq!(events[0], EventKind::Dropped, "{way:?}");
        assert_eq!(
            events[1..],
            vec![EventKind::AbandonedWorkerSucceeded; late],
            "{way:?}"
        );
        assert_eq!(drops.count(), 1, "{way:?}");
    }
}

/// Inline operations used to stay in the list of abandoned operations.
#[test]
fn an_inline_operation_is_never_abandoned() {
    let timeout = limit("nothing_is_lost::in_place", 10).with_max_abandoned(1);
    for round in 0..3 {
        let outcome =
            block_on(Way::AsyncInline.start(&timeout, |_| pending::<Result<(), TimeoutError>>()));
        assert!(
            matches!(outcome, Outcome::TimedOut(_)),
            "round {round}: {outcome:?}"
        );
        let mut call = Way::AsyncInline.start(&timeout, |_| pending::<Result<(), TimeoutError>>());
        let _ = poll_once(&mut call, &Gate::new());
        drop(call);
    }
    assert!(
        workers::abandoned()
            .iter()
            .all(|left| left.name != "nothing_is_lost::in_place")
    );
}
