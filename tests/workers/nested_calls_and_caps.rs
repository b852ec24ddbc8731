//! Nested calls on workers: if there are too few workers, the calls without one end by their own
//! limits, and no worker is blocked for good.

use crate::own_process::in_own_process;
use crate::{concurrent, support};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use concurrent::{must_return, run_concurrently};
use support::{Gate, SOON, block_on, eventually, limit, runtime};
use timeout_runtime::workers::{self, Settings};
use timeout_runtime::{CallStatus, Cause, TimeoutError, add_listener, timeout};

const CAP: usize = 4;

const THREADS: usize = 64;

const DEPTH: u32 = 10;

fn set_cap(cap: usize) {
    Settings {
        cap,
        keep_alive: Duration::from_secs(600),
        ..Settings::current()
    }
    .apply();
}

/// Asserts that all workers are free, and that as many operations as the cap allows can run
/// together.
fn assert_full_capacity() {
    assert_eq!(workers::drain(SOON), 0, "an operation is stuck");
    eventually("no worker is busy and no call is queued", || {
        let stats = workers::stats();
        stats.busy == 0 && stats.queued == 0
    });
    let all_run = Arc::new(Barrier::new(CAP));
    run_concurrently(CAP, CAP, |_| {
        let all_run = Arc::clone(&all_run);
        let outcome = limit("nested_calls::at_once", 60_000).outcome(move |_| {
            all_run.wait();
            Ok::<_, TimeoutError>(7)
        });
        assert_eq!(outcome.success(), Some(7));
    });
    let stats = workers::stats();
    assert!(stats.live <= CAP, "{stats:?}");
    // The other operations wait until a worker is free, and then run.
    let go = Gate::new();
    run_concurrently(THREADS + 1, THREADS + 1, |place| {
        if place == THREADS {
            eventually("the other operations run", || {
                workers::stats().queued == THREADS - CAP
            });
            return go.open();
        }
        let waits = go.clone();
        let outcome = limit("nested_calls::in_turn", 60_000).outcome(move |_| {
            waits.wait();
            Ok::<_, TimeoutError>(7)
        });
        assert_eq!(outcome.success(), Some(7));
    });
}

/// The outcomes of the calls.
#[derive(Debug, Default)]
struct Counts {
    succeeded: AtomicUsize,
    failed: AtomicUsize,
}

impl Counts {
    /// Counts an outcome of a call that waits for workers. Errors must come from its own limit, or
    /// from a nested call's.
    #[track_caller]
    fn count(&self, outcome: Result<u32, TimeoutError>) {
        match outcome {
            Ok(depth) => {
                assert_eq!(depth, DEPTH);
                self.succeeded.fetch_add(1, Ordering::SeqCst);
            }
            Err(error) => {
                let expected = match error.cause() {
                    Cause::TimedOut | Cause::DeadlineExceeded => true,
                    Cause::NoWorker => error.status() == CallStatus::NotStarted,
                    _ => false,
                };
                assert!(expected, "{error:?}");
                self.failed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn total(&self) -> usize {
        self.succeeded.load(Ordering::SeqCst) + self.failed.load(Ordering::SeqCst)
    }
}

#[timeout(name = "nested_calls::equal", ms = 500)]
fn equal(left: u32) -> Result<u32, TimeoutError> {
    if left == 1 {
        Ok(1)
    } else {
        Ok(equal(left - 1)? + 1)
    }
}

/// Each limit is shorter than the enclosing one, so the innermost call ends first and frees a
/// worker.
#[timeout(name = "nested_calls::shorter", ms = 100 * u64::from(left))]
fn shorter(left: u32) -> Result<u32, TimeoutError> {
    if left == 1 {
        Ok(1)
    } else {
        Ok(shorter(left - 1)? + 1)
    }
}

/// Operations must not fill the pool and wait in it for each other for ever.
#[test]
fn nested_calls_beyond_the_cap_end_by_their_limits() {
    in_own_process(|| {
        set_cap(CAP);
        for call in [equal, shorter] {
            must_return(move || {
                let counts = Counts::default();
                run_concurrently(THREADS, THREADS, |_| counts.count(call(DEPTH)));
                assert_eq!(counts.total(), THREADS);
                assert!(counts.failed.load(Ordering::SeqCst) > 0, "{counts:?}");
            });
            assert_full_capacity();
        }
    });
}

/// With enough workers, every call succeeds.
#[test]
fn nested_calls_with_enough_workers_succeed() {
    in_own_process(|| {
        set_cap(THREADS * DEPTH as usize);
        // The extra workers end when they are idle.
        Settings {
            keep_alive: Duration::ZERO,
            ..Settings::current()
        }
        .apply();
        let calls = must_return(|| {
            let calls = Counts::default();
            run_concurrently(THREADS, THREADS, |_| calls.count(enough(DEPTH)));
            calls
        });
        assert_eq!(calls.succeeded.into_inner(), THREADS);
        set_cap(CAP);
        eventually("the extra workers have ended", || {
            workers::stats().live <= CAP
        });
        assert_full_capacity();
    });
}

#[timeout(name = "nested_calls::enough", secs = 60)]
fn enough(left: u32) -> Result<u32, TimeoutError> {
    if left == 1 {
        Ok(1)
    } else {
        Ok(enough(left - 1)? + 1)
    }
}

#[timeout(name = "nested_calls::bridge", ms = 100)]
async fn bridge() -> Result<u32, TimeoutError> {
    Ok(equal(DEPTH - 1)? + 1)
}

#[timeout(name = "nested_calls::bridge", ms = 100, run = "task")]
async fn bridge_task() -> Result<u32, TimeoutError> {
    Ok(equal(DEPTH - 1)? + 1)
}

#[timeout(name = "nested_calls::bridge", ms = 100, run = "worker")]
async fn bridge_worker() -> Result<u32, TimeoutError> {
    Ok(equal(DEPTH - 1)? + 1)
}

/// A sync operation that blocks a worker waits for a future, which in turn waits for a worker.
#[timeout(name = "nested_calls::forth", ms = 100)]
fn forth(left: u32) -> Result<u32, TimeoutError> {
    if left == 1 {
        Ok(1)
    } else {
        Ok(block_on(back(left - 1))? + 1)
    }
}

#[timeout(name = "nested_calls::back", ms = 100)]
async fn back(left: u32) -> Result<u32, TimeoutError> {
    if left == 1 {
        Ok(1)
    } else {
        Ok(forth(left - 1)? + 1)
    }
}

/// The same through an executor whose threads block in calls on workers.
#[test]
fn async_calls_that_wait_for_workers_beyond_the_cap_end_by_their_limits() {
    in_own_process(|| {
        set_cap(CAP);
        must_return(|| {
            let counts = Counts::default();
            let runtime = runtime();
            runtime.block_on(async {
                let calls = (0..THREADS).map(|place| {
                    tokio::spawn(async move {
                        match place % 4 {
                            0 => bridge().await,
                            1 => bridge_task().await,
                            2 => bridge_worker().await,
                            _ => forth(DEPTH),
                        }
                    })
                });
                for call in calls.collect::<Vec<_>>() {
                    counts.count(call.await.unwrap());
                }
            });
            assert_eq!(counts.total(), THREADS);
        });
        assert_full_capacity();
    });
}

#[timeout(name = "nested_calls::of_listener", ms = 20)]
fn of_listener() -> Result<u32, TimeoutError> {
    Ok(7)
}

/// A listener on a worker must not wait for a worker that waits for the listener.
#[test]
fn a_listener_that_makes_calls_beyond_the_cap_blocks_no_worker_for_good() {
    in_own_process(|| {
        set_cap(CAP);
        let received = Arc::new([(); 2].map(|()| AtomicUsize::new(0)));
        let counts = Arc::clone(&received);
        let listener = add_listener(move |event| {
            if event.name != "nested_calls::of_listener" {
                let succeeded = of_listener().is_ok();
                counts[usize::from(succeeded)].fetch_add(1, Ordering::SeqCst);
            }
        });
        must_return(|| {
            let counts = Counts::default();
            run_concurrently(THREADS, THREADS, |_| counts.count(equal(DEPTH)));
            assert_eq!(counts.total(), THREADS);
        });
        assert_eq!(workers::drain(SOON), 0, "an operation is stuck");
        let before = received[1].load(Ordering::SeqCst);
        eventually("a listener's call succeeds again", || {
            limit("nested_calls::received", 60_000)
                .outcome(|_| Ok::<_, TimeoutError>(7))
                .status()
                == CallStatus::Ok
                && received[1].load(Ordering::SeqCst) > before
        });
        drop(listener);
        assert!(received[0].load(Ordering::SeqCst) + before >= THREADS);
        assert_full_capacity();
    });
}
