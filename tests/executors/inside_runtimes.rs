//! Sync calls inside async code, and runtimes that are dropped during calls.

use crate::{concurrent, support};
use std::future::pending;
use std::sync::mpsc;

use support::short;
use support::{Gate, OnDrop, limit, record, runtime, until_cancelled};
use timeout_runtime::{EventKind, Failure, Outcome, TimeoutError};
use tokio::runtime::{Builder, Runtime};

/// Makes a sync call that succeeds and one that times out.
fn succeed_and_time_out() {
    let result = limit("inside_runtimes::sync", 60_000).outcome(|_| Ok::<_, TimeoutError>(7));
    assert!(matches!(result, Outcome::Success(7)), "{result:?}");
    let stops = limit("inside_runtimes::sync", short()).outcome(|token| until_cancelled(&token));
    assert!(matches!(stops, Outcome::TimedOut(_)), "{stops:?}");
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A sync call in a task used to fail with "cannot start a runtime from within a runtime".
#[test]
fn a_sync_call_works_inside_a_task() {
    concurrent::must_return(|| {
        for runtime in [current_thread(), runtime()] {
            runtime.block_on(async {
                succeed_and_time_out();
                tokio::spawn(async { succeed_and_time_out() })
                    .await
                    .unwrap();
            });
        }
    });
}

/// A sync call must neither panic nor deadlock in the blocking pool of the runtime.
#[test]
fn a_sync_call_works_on_a_blocking_thread() {
    concurrent::must_return(|| {
        current_thread()
            .block_on(async { tokio::task::spawn_blocking(succeed_and_time_out).await })
            .unwrap();
    });
}

/// A destructor that makes a call while its runtime shuts down must not panic.
#[test]
fn a_sync_call_works_in_a_destructor_while_the_runtime_shuts_down() {
    for runtime in [current_thread, runtime] {
        let (done, works) = mpsc::channel();
        concurrent::must_return(move || {
            let runtime = runtime();
            let (there, is_there) = mpsc::channel();
            runtime.spawn(async move {
                let _calls = OnDrop(move || {
                    let works = std::panic::catch_unwind(succeed_and_time_out).is_ok();
                    done.send(works).unwrap();
                });
                there.send(()).unwrap();
                pending::<()>().await;
            });
            runtime.block_on(tokio::task::yield_now());
            is_there.recv().unwrap();
        });
        assert_eq!(works.recv(), Ok(true));
    }
}

/// Operations on workers must not use the blocking pool: a runtime waits for that pool.
#[test]
fn a_runtime_does_not_wait_for_operations_abandoned_on_workers() {
    let release = Gate::new();
    for runtime in [current_thread, runtime] {
        let (sync_body, async_body) = (release.clone(), release.clone());
        concurrent::must_return(move || {
            let runtime = runtime();
            let (sync, on_worker) = runtime.block_on(async move {
                let sync = limit("inside_runtimes::stuck", short()).outcome(move |_| {
                    sync_body.wait();
                    Ok::<_, TimeoutError>(7)
                });
                let on_worker = limit("inside_runtimes::stuck", short())
                    .on_worker()
                    .outcome_async(|_| async move {
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

/// A shutdown must not wait for an abandoned task, and must report it.
#[test]
fn a_dropped_runtime_reports_its_abandoned_tasks() {
    let recorder = record("inside_runtimes::task");
    concurrent::must_return(|| {
        let runtime = runtime();
        let timeout = limit("inside_runtimes::task", short()).cancel_on_timeout(false);
        let outcome: Outcome<(), TimeoutError> =
            runtime.block_on(timeout.as_task().outcome_async(|_| pending()));
        assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
    });
    assert_eq!(
        recorder.wait_for(2),
        [
            EventKind::TimedOut,
            EventKind::AbandonedWorkerFailed(Failure::Unfinished)
        ]
    );
}

/// Calls must not delay the shutdown of the runtime that polls them, or end without an event.
#[test]
fn a_runtime_can_be_dropped_during_a_call() {
    let recorder = record("inside_runtimes::dropped");
    concurrent::must_return(|| {
        let runtime = runtime();
        let (there, is_there) = mpsc::channel();
        let timeout = limit("inside_runtimes::dropped", 600_000);
        let started = there.clone();
        runtime.spawn(timeout.outcome_async(|_| async move {
            started.send(()).unwrap();
            pending::<Result<(), TimeoutError>>().await
        }));
        runtime.spawn(timeout.on_worker().outcome_async(|token| async move {
            there.send(()).unwrap();
            token.cancelled().await;
            Ok::<_, TimeoutError>(())
        }));
        is_there.recv().unwrap();
        is_there.recv().unwrap();
    });
    let mut kinds = recorder.wait_for(3);
    kinds.sort_by_key(|kind| support::is_late(kind));
    assert_eq!(
        kinds,
        [
            EventKind::Dropped,
            EventKind::Dropped,
            EventKind::AbandonedWorkerSucceeded
        ]
    );
}
