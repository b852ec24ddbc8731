//! Sync calls from inside async code, and runtimes that are dropped around calls.

use crate::{crowd, support};
use std::future::pending;
use std::sync::mpsc;

use support::short;
use support::{Gate, limit, record, runtime, until_fired};
use timeout_runtime::{EventKind, Failure, Outcome, TimeoutError};
use tokio::runtime::{Builder, Runtime};

/// Both endings of a sync call.
fn answer_and_time_out() {
    let answer = limit("inside_runtimes::sync", 60_000).outcome(|_| Ok::<_, TimeoutError>(7));
    assert!(matches!(answer, Outcome::Success(7)), "{answer:?}");
    let heeds = limit("inside_runtimes::sync", short()).outcome(|token| until_fired(&token));
    assert!(matches!(heeds, Outcome::TimedOut(_)), "{heeds:?}");
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Guards against "cannot start a runtime from within a runtime" in a task.
#[test]
fn a_sync_call_works_inside_a_task() {
    crowd::ends(|| {
        for runtime in [current_thread(), runtime()] {
            runtime.block_on(async {
                answer_and_time_out();
                tokio::spawn(async { answer_and_time_out() }).await.unwrap();
            });
        }
    });
}

/// Guards against a sync call that panics or waits for itself on a thread of the runtime's blocking pool.
#[test]
fn a_sync_call_works_on_a_blocking_thread() {
    crowd::ends(|| {
        current_thread()
            .block_on(async { tokio::task::spawn_blocking(answer_and_time_out).await })
            .unwrap();
    });
}

/// Guards against a panic in a destructor that makes a call while its runtime shuts down.
#[test]
fn a_sync_call_works_in_a_destructor_while_the_runtime_shuts_down() {
    struct CallsWhenDropped(mpsc::Sender<bool>);

    impl Drop for CallsWhenDropped {
        fn drop(&mut self) {
            let works = std::panic::catch_unwind(answer_and_time_out).is_ok();
            self.0.send(works).unwrap();
        }
    }

    for runtime in [current_thread, runtime] {
        let (done, works) = mpsc::channel();
        crowd::ends(move || {
            let runtime = runtime();
            let (there, is_there) = mpsc::channel();
            runtime.spawn(async move {
                let _calls = CallsWhenDropped(done);
                there.send(()).unwrap();
                pending::<()>().await;
            });
            runtime.block_on(tokio::task::yield_now());
            is_there.recv().unwrap();
        });
        assert_eq!(works.recv(), Ok(true));
    }
}

/// Guards against a shutdown that waits for a worker: such work must not be parked on the runtime's own pool.
#[test]
fn a_runtime_does_not_wait_for_operations_abandoned_on_workers() {
    let release = Gate::new();
    for runtime in [current_thread, runtime] {
        let (sync_body, async_body) = (release.clone(), release.clone());
        crowd::ends(move || {
            let runtime = runtime();
            let (sync, on_worker) = runtime.block_on(async move {
                let sync = limit("inside_runtimes::stuck", short()).outcome(move |_| {
                    sync_body.wait();
                    Ok::<_, TimeoutError>(7)
                });
                let on_worker = limit("inside_runtimes::stuck", short())
                    .outcome_async_on_worker(|_| async move {
                        async_body.wait();
                        Ok::<_, TimeoutError>(7)
                    })
                    .await;
                (sync, on_worker)
            });
            assert!(matches!(sync, Outcome::TimedOut(_)), "{sync:?}");
            assert!(matches!(on_worker, Outcome::TimedOut(_)), "{on_worker:?}");
            drop(runtime);
        });
    }
    release.open();
}

/// Guards against a shutdown that waits for an abandoned task, or loses it without a word.
#[test]
fn a_runtime_that_is_dropped_reports_its_abandoned_tasks() {
    let recorder = record("inside_runtimes::task");
    crowd::ends(|| {
        let runtime = runtime();
        let timeout = limit("inside_runtimes::task", short()).cancel_on_timeout(false);
        let ending: Outcome<(), TimeoutError> =
            runtime.block_on(timeout.outcome_task(|_| pending()));
        assert!(matches!(ending, Outcome::TimedOut(_)), "{ending:?}");
    });
    assert_eq!(
        recorder.wait_for(2),
        [
            EventKind::TimedOut,
            EventKind::AbandonedWorkerFailed(Failure::Unfinished)
        ]
    );
}

/// Guards against calls that hold up the end of the runtime that polls them, or end without an event.
#[test]
fn a_runtime_can_be_dropped_in_the_middle_of_a_call() {
    let recorder = record("inside_runtimes::dropped");
    crowd::ends(|| {
        let runtime = runtime();
        let (there, is_there) = mpsc::channel();
        let timeout = limit("inside_runtimes::dropped", 600_000);
        let started = there.clone();
        runtime.spawn(timeout.outcome_async(|_| async move {
            started.send(()).unwrap();
            pending::<Result<(), TimeoutError>>().await
        }));
        runtime.spawn(timeout.outcome_async_on_worker(|token| async move {
            there.send(()).unwrap();
            token.cancelled().await;
            Ok::<_, TimeoutError>(())
        }));
        is_there.recv().unwrap();
        is_there.recv().unwrap();
    });
    let mut kinds = recorder.wait_for(3);
    kinds.sort_by_key(|kind| !kind.is_verdict());
    assert_eq!(
        kinds,
        [
            EventKind::Dropped,
            EventKind::Dropped,
            EventKind::AbandonedWorkerSucceeded
        ]
    );
}
