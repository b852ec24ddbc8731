//! No limit ends a call early, and no spurious wake-up ends or prolongs a call.

use crate::{concurrent, support};
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use futures::future::join_all;
use support::{limit, runtime, until_cancelled};
use timeout_runtime::{CallStatus, CancelToken, Outcome, TimeoutError};
use tokio::runtime::Runtime;

/// Limits in milliseconds.
const LIMITS: [u64; 5] = [1, 2, 5, 10, 33];
const RUNS: usize = 500;
const AT_ONCE: usize = 25;
/// A call that each wake-up prolongs never ends. A call that keeps its limit ends before this.
const LATE: Duration = Duration::from_secs(30);

type CallOutcome = Outcome<u32, TimeoutError>;

/// Checks that a call with a limit of `ms` timed out, and not early by the test's clock or its own.
#[track_caller]
fn assert_not_early(ms: u64, start: Instant, outcome: &CallOutcome) {
    let (measured, limit) = (start.elapsed(), Duration::from_millis(ms));
    // On a busy machine, the limit may pass before a worker takes the operation.
    let (Outcome::TimedOut(error) | Outcome::NotStarted(error)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(error.is_timed_out(), "{error}");
    assert!(measured >= limit, "{limit:?} ended after {measured:?}");
    assert!(error.elapsed() >= limit, "{error}");
    assert!(error.elapsed() <= measured, "{error}, not {measured:?}");
}

/// Rounding a wait down ended it early, for parked callers and for tokens without a waiter.
#[test]
fn a_sync_call_never_ends_before_its_limit() {
    for ms in LIMITS {
        concurrent::run_concurrently(AT_ONCE, RUNS, |run| {
            let timeout = limit("never_early::sync", ms);
            let body = |token: CancelToken| until_cancelled(&token);
            let start = Instant::now();
            let outcome = if run.is_multiple_of(2) {
                timeout.outcome(body)
            } else {
                timeout.inline().outcome(body)
            };
            assert_not_early(ms, start, &outcome);
        });
    }
}

/// A timer that expires early must not end an inline, task or worker call early.
#[test]
fn an_async_call_never_ends_before_its_limit() {
    async fn one(run: usize, ms: u64) {
        let timeout = limit("never_early::async", ms);
        let body = |token: CancelToken| async move {
            token.cancelled().await;
            Err(token.check().unwrap_err())
        };
        let start = Instant::now();
        let outcome = match run % 8 {
            0 => timeout.on_worker().outcome_async(body).await,
            1..4 => timeout.as_task().outcome_async(body).await,
            4 | 5 => timeout.outcome_async(body).await,
            _ => timeout.outcome_async(|_| pending()).await,
        };
        assert_not_early(ms, start, &outcome);
    }

    let runtime = runtime();
    for ms in LIMITS {
        for first in (0..RUNS).step_by(100) {
            runtime.block_on(join_all((first..first + 100).map(|run| one(run, ms))));
        }
    }
}

/// A limit must not be rounded down or cut short on Tokio's paused clock.
#[tokio::test(start_paused = true)]
async fn on_a_paused_clock_a_call_ends_at_its_limit() {
    for ms in LIMITS {
        let limit_ms = Duration::from_millis(ms);
        for way in 0..2 {
            let timeout = limit("never_early::paused", ms);
            let start = tokio::time::Instant::now();
            let outcome: CallOutcome = match way {
                0 => timeout.outcome_async(|_| pending()).await,
                _ => timeout.as_task().outcome_async(|_| pending()).await,
            };
            let measured = start.elapsed();
            assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
            let tick = Duration::from_millis(1);
            assert!(
                (limit_ms..=limit_ms + tick).contains(&measured),
                "{measured:?}"
            );
        }
    }
}

/// Calls a wake function every 2 ms until it is dropped.
struct Strays(Arc<AtomicBool>);

impl Strays {
    fn new(wake: impl Fn() + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                wake();
                thread::sleep(Duration::from_millis(2));
            }
        });
        Self(over)
    }

    fn unpark(thread: Thread) -> Self {
        Self::new(move || thread.unpark())
    }
}

impl Drop for Strays {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[track_caller]
fn assert_in_time(start: Instant, wanted: Duration) {
    let measured = start.elapsed();
    assert!(measured >= wanted, "ended after {measured:?}");
    assert!(measured < wanted + LATE, "ended after {measured:?}");
}

/// A parked caller used to take a spurious wake-up for the end, or to restart its wait.
#[test]
fn spurious_unparks_neither_end_nor_prolong_a_sync_call() {
    concurrent::must_return(|| {
        let _strays = Strays::unpark(thread::current());
        for inline in [false, true] {
            let timeout = limit("never_early::unparked", 50);
            let start = Instant::now();
            let outcome = if inline {
                timeout.inline().outcome(|token| until_cancelled(&token))
            } else {
                timeout.outcome(|token| until_cancelled(&token))
            };
            assert_not_early(50, start, &outcome);
            assert_in_time(start, Duration::from_millis(50));
        }
    });
}

/// `CancelToken::sleep` used to have the same bug.
#[test]
fn spurious_unparks_neither_end_nor_prolong_a_sleep() {
    concurrent::must_return(|| {
        let _strays = Strays::unpark(thread::current());
        let (token, nap) = (CancelToken::new(), Duration::from_millis(50));
        let start = Instant::now();
        token.sleep(nap).unwrap();
        assert_in_time(start, nap);
        let start = Instant::now();
        assert_eq!(token.wait_timeout(nap), None);
        assert_in_time(start, nap);
    });
}

/// A poll used to restart the timer with the whole limit.
#[test]
fn spurious_wake_ups_neither_end_nor_prolong_an_async_call() {
    let runtime = runtime();
    for way in 0..3 {
        // On a busy machine the wake-ups may take longer than a limit; a longer limit follows.
        let mut limits = (0..10).map(|doubled| 50 << doubled);
        let woken = limits.any(|ms| is_woken_before_its_end(&runtime, way, ms));
        assert!(woken, "there were no spurious wake-ups");
    }
}

/// Makes a call whose task is woken every 2 ms. Returns whether it was woken more than once.
fn is_woken_before_its_end(runtime: &Runtime, way: usize, ms: u64) -> bool {
    let waker = Arc::new(Mutex::new(Waker::noop().clone()));
    let seen = Arc::clone(&waker);
    let _strays = Strays::new(move || seen.lock().unwrap().wake_by_ref());
    let timeout = limit("never_early::woken", ms);
    let polls = concurrent::must_return({
        let runtime = runtime.handle().clone();
        move || {
            runtime.block_on(async {
                let start = Instant::now();
                let (outcome, polls) = match way {
                    0 => stored(waker, timeout.outcome_async(|_| pending())).await,
                    1 => stored(waker, timeout.as_task().outcome_async(|_| pending())).await,
                    _ => {
                        let body = |_| pending();
                        stored(waker, timeout.on_worker().outcome_async(body)).await
                    }
                };
                assert_not_early(ms, start, &outcome);
                assert_in_time(start, Duration::from_millis(ms));
                polls
            })
        }
    });
    polls > 3
}

/// Awaits `call`, whose waker is stored in `place`. Returns its outcome and the number of polls.
async fn stored(
    place: Arc<Mutex<Waker>>,
    call: impl Future<Output = CallOutcome>,
) -> (CallOutcome, usize) {
    let mut call = pin!(call);
    let mut polls = 0;
    let outcome = poll_fn(|context| {
        polls += 1;
        place.lock().unwrap().clone_from(context.waker());
        match call.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(outcome),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    (outcome, polls)
}

/// A limit that is rounded down to a coarser step cuts off an operation that needs most of it.
#[test]
fn an_operation_may_use_nearly_all_of_its_limit() {
    // The overhead of a busy machine grows less than the limit does.
    let mut limits = (0..10).flat_map(|doubled| [50 << doubled; 4]);
    let succeeds = limits.any(|ms| {
        let nearly = Duration::from_millis(ms / 50 * 49);
        let sync = limit("never_early::nearly", ms).outcome(move |_| {
            thread::sleep(nearly);
            Ok::<_, TimeoutError>(())
        });
        sync.status() == CallStatus::Ok
    });
    assert!(succeeds, "the operation was cut off at every limit");
}
