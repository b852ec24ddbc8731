//! Hundreds of calls of operations that never end: their callers return in time, other calls still
//! get workers, and all workers are reused afterwards.

use crate::own_process::in_own_process;
use crate::{concurrent, support};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use concurrent::{must_return, run_concurrently};
use support::{Recorder, SOON, limit, record, short};
use timeout_runtime::workers::{self, Settings};
use timeout_runtime::{CallStatus, Cause, EventKind, Outcome, Timeout, TimeoutError};

const CALLS: usize = 600;

const THREADS: usize = 8;

/// A short limit within which most operations start.
fn brief() -> u64 {
    short() / 10
}

/// A caller blocked by a stuck operation would never return; this bound allows for a busy machine.
const PROMPT: Duration = Duration::from_secs(30);

fn set_cap(cap: usize) {
    let keep_alive = Duration::from_millis(1);
    Settings {
        cap,
        keep_alive,
        ..Settings::current()
    }
    .apply();
}

/// A lock that the test holds, and at which all operations block.
type Blocker = Arc<Mutex<()>>;

/// The outcomes of the calls of a flood.
#[derive(Debug, Default)]
struct Counts {
    timed_out: AtomicUsize,
    refused: AtomicUsize,
    /// No worker had taken these calls in time.
    withdrawn: AtomicUsize,
}

/// Makes many calls whose operations wait for the blocker. Returns how many of them started, and
/// how many were refused.
fn flood(timeout: &Timeout, blocker: &Blocker) -> (usize, usize) {
    let name = timeout.name();
    let (timeout, blocker) = (timeout.clone(), Arc::clone(blocker));
    let Counts {
        timed_out,
        refused,
        withdrawn,
    } = must_return(move || {
        let counts = Counts::default();
        run_concurrently(THREADS, CALLS, |_| {
            let blocker = Arc::clone(&blocker);
            let start = Instant::now();
            let outcome = timeout.outcome(move |_| {
                drop(blocker.lock());
                Ok::<_, TimeoutError>(())
            });
            assert!(start.elapsed() < PROMPT, "{outcome:?}");
            let count = match outcome {
                Outcome::TimedOut(_) => &counts.timed_out,
                Outcome::NotStarted(error) if error.cause() == Cause::NoWorker => &counts.refused,
                Outcome::NotStarted(error) if error.is_timed_out() => &counts.withdrawn,
                other => panic!("{other:?}"),
            };
            count.fetch_add(1, Ordering::SeqCst);
        });
        counts
    });
    let (timed_out, refused) = (timed_out.into_inner(), refused.into_inner());
    assert_eq!(timed_out + refused + withdrawn.into_inner(), CALLS);
    let left = workers::abandoned();
    assert_eq!(left.len(), timed_out);
    assert!(left.iter().all(|left| left.name == name));
    let keep: HashSet<_> = left.iter().filter_map(|left| left.worker).collect();
    assert_eq!(keep.len(), timed_out, "one worker for each call");
    assert_eq!(workers::stats().abandoned, timed_out);
    (timed_out, refused)
}

/// Asserts that all operations end and are reported, and that the full number of workers runs
/// again.
#[track_caller]
fn assert_recovers(
    timeout: &Timeout,
    cap: usize,
    recorder: &Recorder,
    (stuck, refused): (usize, usize),
) {
    assert_eq!(workers::drain(SOON), 0);
    let kinds = recorder.kinds();
    let emitted = |kind| kinds.iter().filter(|other| **other == kind).count();
    assert_eq!(emitted(EventKind::TimedOut), stuck);
    assert_eq!(emitted(EventKind::AbandonedWorkerSucceeded), stuck);
    assert_eq!(emitted(EventKind::NotStarted(Cause::NoWorker)), refused);
    let all = Arc::new(Barrier::new(cap));
    let again = timeout.clone().with_limit(Duration::from_secs(60)).unwrap();
    run_concurrently(cap, cap, |_| {
        let all = Arc::clone(&all);
        let outcome = again.outcome(move |_| {
            all.wait();
            Ok::<_, TimeoutError>(())
        });
        assert_eq!(outcome.status(), CallStatus::Ok, "{outcome:?}");
    });
}

/// Stuck calls of one name must not take the workers of all others.
// Fails if no number of abandoned operations is too many, if the default is not half of the cap, or
// if abandoned operations of other names count.
#[test]
fn stuck_operations_of_one_name_keep_half_of_the_workers_at_most() {
    in_own_process(|| {
        const CAP: usize = 512;

        set_cap(CAP);
        let timeout = limit("stuck_floods::half", brief());
        let recorder = record(timeout.name());
        let blocker = Blocker::default();
        let shut = blocker.lock().unwrap();
        let counts = flood(&timeout, &blocker);
        let (stuck, refused) = counts;
        // The check may be passed by all callers together.
        assert!((CAP / 2..CAP / 2 + THREADS).contains(&stuck), "{stuck}");
        assert!(refused > 0);
        run_concurrently(THREADS, 100, |_| {
            let healthy = limit("stuck_floods::healthy", 60_000);
            let outcome = healthy.outcome(|_| Ok::<_, TimeoutError>(7));
            assert_eq!(outcome.success(), Some(7));
        });
        drop(shut);
        assert_recovers(&timeout, CAP, &recorder, counts);
    });
}

/// Callers must not wait in a full pool past their limit, and no worker may be lost.
// Fails if a caller waits 30 s longer, if a queued call reports `TimedOut` and not `NoWorker`, or
// if a worker is lost while an operation is abandoned.
#[test]
fn with_every_worker_stuck_callers_are_refused_and_workers_recover() {
    in_own_process(|| {
        const CAP: usize = 32;

        set_cap(CAP);
        let timeout = limit("stuck_floods::full", brief()).with_max_abandoned(usize::MAX);
        let recorder = record(timeout.name());
        let blocker = Blocker::default();
        let shut = blocker.lock().unwrap();
        let counts = flood(&timeout, &blocker);
        let (stuck, refused) = counts;
        assert_eq!(stuck, CAP);
        assert!(refused > 0);
        let other = limit("stuck_floods::other", brief()).outcome(|_| Ok::<_, TimeoutError>(7));
        assert!(
            matches!(&other, Outcome::NotStarted(error) if error.cause() == Cause::NoWorker),
            "{other:?}"
        );
        drop(shut);
        assert_recovers(&timeout, CAP, &recorder, counts);
    });
}
