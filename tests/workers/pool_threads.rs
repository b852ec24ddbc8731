//! The settings decide when workers start and end, and which stacks they have.

use crate::own_process::in_own_process;
use crate::support;
use std::collections::HashSet;
use std::thread::{self, ThreadId};
use std::time::Duration;

use support::{ABANDONING, Gate, Way, eventually, limit, occupy_worker, short};
use timeout_runtime::workers::{self, Settings};
use timeout_runtime::{CallStatus, Cause, Outcome, TimeoutError};

/// The thread of an operation, and its name.
#[track_caller]
fn thread_of(way: Way) -> (ThreadId, String) {
    let outcome = way.run(&limit("pool_threads::id", 60_000), |_| {
        let thread = thread::current();
        Ok::<_, TimeoutError>((thread.id(), thread.name().unwrap_or_default().to_owned()))
    });
    match outcome {
        Outcome::Success(thread) => thread,
        other => panic!("{way:?}: {other:?}"),
    }
}

#[test]
fn settings_that_are_not_mentioned_stay() {
    in_own_process(|| {
        let set = Settings {
            cap: 3,
            keep_alive: Duration::from_secs(5),
            stack_size: Some(1 << 20),
            reuse: false,
            spin: false,
        };
        set.clone().apply();
        assert_eq!(Settings::current(), set);
        Settings {
            cap: 0,
            ..Settings::current()
        }
        .apply();
        assert_eq!(Settings::current(), Settings { cap: 1, ..set });
    });
}

const ON_WORKERS: [Way; 2] = [Way::SyncWorker, Way::AsyncWorker];

#[test]
fn workers_are_named_and_reused() {
    in_own_process(|| {
        // No worker may end between two calls.
        Settings {
            keep_alive: Duration::from_secs(600),
            ..Settings::current()
        }
        .apply();
        let mut ids = HashSet::new();
        for way in ON_WORKERS {
            let (id, name) = thread_of(way);
            let number = name.strip_prefix("timeout-").map(str::parse::<u64>);
            assert!(matches!(number, Some(Ok(_))), "{way:?}: {name}");
            ids.insert(id);
            eventually("the worker is idle", || {
                workers::stats().idle == workers::stats().live
            });
        }
        assert_eq!(ids.len(), 1);
    });
}

#[test]
fn idle_workers_end_after_a_while() {
    in_own_process(|| {
        Settings {
            keep_alive: Duration::from_millis(1),
            ..Settings::current()
        }
        .apply();
        let (id, _) = thread_of(Way::SyncWorker);
        eventually("all workers have ended", || workers::stats().live == 0);
        assert_ne!(thread_of(Way::SyncWorker).0, id);
        eventually("all workers have ended", || workers::stats().live == 0);
    });
}

thread_local! {
    static TOUCHED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[test]
fn without_reuse_each_call_has_a_fresh_thread() {
    in_own_process(|| {
        Settings {
            reuse: false,
            ..Settings::current()
        }
        .apply();
        let mut ids = HashSet::new();
        for round in 0..10 {
            let way = ON_WORKERS[round % 2];
            assert!(
                ids.insert(thread_of(way).0),
                "round {round}: a reused thread"
            );
            let outcome = way.run(&limit("pool_threads::local", 60_000), |_| {
                Ok::<_, TimeoutError>(TOUCHED.replace(true))
            });
            assert!(matches!(outcome, Outcome::Success(false)), "{outcome:?}");
        }
        eventually("all workers have ended", || workers::stats().live == 0);
    });
}

#[test]
fn a_stack_has_the_configured_size() {
    in_own_process(|| {
        fn deep(left: usize) -> usize {
            let block = std::hint::black_box([0_u8; 4096]);
            if left == 0 {
                return usize::from(block[0]);
            }
            deep(left - 1) + usize::from(block[left % 4096])
        }

        // Enough for 16 MiB, which is more than any default.
        Settings {
            stack_size: Some(64 << 20),
            ..Settings::current()
        }
        .apply();
        let outcome = Way::SyncWorker.run(&limit("pool_threads::deep", 60_000), |_| {
            Ok::<_, TimeoutError>(deep(4096))
        });
        assert!(matches!(outcome, Outcome::Success(0)), "{outcome:?}");
    });
}

#[test]
fn without_new_threads_a_call_waits_for_an_existing_worker() {
    in_own_process(|| {
        let release = Gate::new();
        let occupied = occupy_worker("pool_threads::occupied", &release);
        assert_eq!(workers::stats().live, 1);
        Settings {
            stack_size: Some(usize::MAX / 2),
            ..Settings::current()
        }
        .apply();
        let waits = thread::spawn(|| thread_of(Way::SyncWorker));
        eventually("the call is queued", || workers::stats().queued == 1);
        let expired = Way::SyncWorker.run(&limit("pool_threads::expires", short()), |_| {
            Ok::<_, TimeoutError>(7)
        });
        let cause = expired.timeout_error().map(TimeoutError::cause);
        assert_eq!(cause, Some(Cause::NoWorker), "{expired:?}");
        release.open();
        assert_eq!(occupied.join().unwrap().status(), CallStatus::Ok);
        waits.join().unwrap();
    });
}

#[test]
fn without_any_worker_a_call_is_refused_immediately() {
    in_own_process(|| {
        Settings {
            keep_alive: Duration::ZERO,
            ..Settings::current()
        }
        .apply();
        thread_of(Way::SyncWorker);
        eventually("all workers have ended", || workers::stats().live == 0);
        Settings {
            stack_size: Some(usize::MAX / 2),
            ..Settings::current()
        }
        .apply();
        for way in ON_WORKERS {
            let outcome = way.run(&limit("pool_threads::none", 600_000), |_| {
                Ok::<_, TimeoutError>(7)
            });
            let cause = outcome.timeout_error().map(TimeoutError::cause);
            assert_eq!(cause, Some(Cause::NoWorker), "{way:?}: {outcome:?}");
            assert!(matches!(outcome, Outcome::NotStarted(_)), "{way:?}");
        }
        Settings {
            stack_size: Some(2 << 20),
            ..Settings::current()
        }
        .apply();
        for way in ABANDONING {
            thread_of(way);
        }
    });
}
