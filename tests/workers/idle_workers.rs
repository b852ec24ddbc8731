//! Idle workers end after a while, and none takes a job with it.

use crate::own_process::in_own_process;
use crate::{concurrent, support};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use concurrent::run_concurrently;
use support::{Way, eventually, limit};
use timeout_runtime::TimeoutError;
use timeout_runtime::workers::{self, Settings};

/// Makes workers end after this idle time, from the next worker on.
fn set_keep_alive(keep_alive: Duration) {
    Settings {
        keep_alive,
        ..Settings::current()
    }
    .apply();
    eventually("all workers have ended", || workers::stats().live == 0);
}

/// The number of worker threads, where the system reports it.
fn threads() -> usize {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return 0;
    };
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let is_worker = |name: &String| {
        let number = name.strip_prefix("timeout-");
        number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    };
    names.filter(is_worker).count()
}

/// The threads of a burst used to stay for ever.
// Fails if an idle worker never ends.
#[test]
fn after_a_burst_all_workers_end() {
    in_own_process(|| {
        const CALLS: usize = 500;

        set_keep_alive(Duration::from_millis(20));
        let all = Arc::new(Barrier::new(CALLS));
        run_concurrently(CALLS, CALLS, |_| {
            let all = Arc::clone(&all);
            let outcome = limit("idle_workers::burst", 60_000).outcome(move |_| {
                all.wait();
                Ok::<_, TimeoutError>(7)
            });
            assert_eq!(outcome.success(), Some(7));
        });
        eventually("all workers have ended", || workers::stats().live == 0);
        eventually("their threads have ended", || threads() == 0);
    });
}

/// The thread of an operation.
#[track_caller]
fn thread_of(way: Way) -> ThreadId {
    let outcome = way.run(&limit("idle_workers::job", 60_000), |_| {
        Ok::<_, TimeoutError>(thread::current().id())
    });
    outcome.success().expect("the job is done")
}

/// A job given to a worker that is about to end must not be lost.
// Fails if a worker ends although a caller has claimed it.
#[test]
fn no_job_is_lost_to_a_worker_that_ends() {
    in_own_process(|| {
        const THREADS: usize = 4;

        let rounds = support::rounds(2000, 10_000);
        for keep_alive in [Duration::ZERO, Duration::from_millis(1)] {
            set_keep_alive(keep_alive);
            let (same, other) = (AtomicUsize::new(0), AtomicUsize::new(0));
            run_concurrently(THREADS, THREADS, |_| {
                const STEP: Duration = Duration::from_micros(5);
                let (mut last, mut pause) = (None, keep_alive);
                for _ in 0..rounds / THREADS {
                    let thread = thread_of(Way::SyncWorker);
                    // Searches for the pause after which the worker is about to end.
                    if last.replace(thread) == Some(thread) {
                        same.fetch_add(1, Ordering::SeqCst);
                        pause += pause / 8 + STEP;
                    } else {
                        other.fetch_add(1, Ordering::SeqCst);
                        pause = pause.saturating_sub(pause / 8 + STEP);
                    }
                    let next = Instant::now() + pause;
                    while Instant::now() < next {
                        thread::yield_now();
                    }
                }
            });
            let (same, other) = (same.into_inner(), other.into_inner());
            assert!(
                same > rounds / 100 && other > rounds / 100,
                "{keep_alive:?}: {same} jobs met the worker of the one before, {other} did not"
            );
        }
    });
}
