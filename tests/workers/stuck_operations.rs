//! A timed-out operation may still run: its caller returns, and the operation counts as abandoned
//! until it ends.

use crate::own_process::in_own_process;
use crate::{concurrent, support};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{hint, thread};

use support::{eventually, limit, record};
use timeout_runtime::{EventKind, Outcome, TimeoutError, workers};

const CALLS: usize = 10;

fn abandoned(name: &str) -> usize {
    workers::abandoned()
        .iter()
        .filter(|left| left.name == name)
        .count()
}

/// A caller used to wait for an operation that never stops, and such an operation counted as ended.
// Fails if a caller waits 30 s longer.
#[test]
fn stuck_operations_free_their_callers_and_are_counted_until_they_end() {
    in_own_process(|| {
        static STOP: AtomicBool = AtomicBool::new(false);
        const NAME: &str = "stuck_work::spins";

        let recorder = record(NAME);
        let mut stuck = 0;
        while stuck < CALLS {
            let (outcome, took) = concurrent::must_return(|| {
                let start = Instant::now();
                let outcome = limit(NAME, 30).outcome(|_| {
                    while !STOP.load(Ordering::Relaxed) {
                        hint::spin_loop();
                    }
                    Ok::<_, TimeoutError>(())
                });
                (outcome, start.elapsed())
            });
            assert!(took >= Duration::from_millis(30), "{took:?}");
            match outcome {
                Outcome::TimedOut(_) => stuck += 1,
                // On a busy machine no worker may have taken the call in time.
                Outcome::NotStarted(error) if error.is_timed_out() => {}
                other => panic!("after {stuck}: {other:?}"),
            }
        }
        assert_eq!(abandoned(NAME), CALLS);
        assert!(workers::stats().abandoned >= CALLS);
        let fresh = limit("stuck_work::fresh", 20_000).outcome(|_| {
            thread::sleep(Duration::from_millis(1));
            Ok::<_, TimeoutError>(7)
        });
        assert!(matches!(fresh, Outcome::Success(7)), "{fresh:?}");

        STOP.store(true, Ordering::Relaxed);
        eventually("no operation is abandoned", || abandoned(NAME) == 0);
        let kinds = recorder.kinds();
        let count = |kind| kinds.iter().filter(|other| **other == kind).count();
        assert_eq!(count(EventKind::TimedOut), CALLS);
        assert_eq!(count(EventKind::AbandonedWorkerSucceeded), CALLS);
    });
}

/// A future that was dropped by its caller is not running, and does not count as abandoned.
#[test]
fn an_inline_future_never_counts_as_abandoned() {
    const NAME: &str = "stuck_work::in_place";

    concurrent::must_return(|| {
        futures::executor::block_on(async {
            let never = limit(NAME, 1)
                .with_max_abandoned(1)
                .outcome_async(|_| std::future::pending::<Result<(), TimeoutError>>());
            assert!(matches!(never.await, Outcome::TimedOut(_)));
            assert_eq!(abandoned(NAME), 0);

            let mut dropped = Box::pin(
                limit(NAME, 60_000)
                    .with_max_abandoned(1)
                    .outcome_async(|_| std::future::pending::<Result<(), TimeoutError>>()),
            );
            assert!(futures::poll!(&mut dropped).is_pending());
            drop(dropped);
            assert_eq!(abandoned(NAME), 0);
        });
    });
}
