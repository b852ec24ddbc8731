//! Nested calls share the time of their enclosing call, and none of them extends it.

use crate::{concurrent, support};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use concurrent::run_concurrently;
use support::{ABANDONING, EVERY_WAY, Gate, LONG, SOON, Way, limit, short, until_cancelled};
use timeout_runtime::{Cause, Deadline, Outcome, TimeoutError};

/// Number of table rows that run at the same time.
const AT_ONCE: usize = 10;

/// A limit that passes during the test, and that leaves two nested calls time to start.
fn brief() -> u64 {
    2 * short()
}

/// Cause of an outcome without a result.
fn cause<T, E>(outcome: &Outcome<T, E>) -> Option<Cause> {
    outcome.timeout_error().map(TimeoutError::cause)
}

fn pairs() -> Vec<(Way, Way)> {
    let inside = |outer| EVERY_WAY.into_iter().map(move |inner| (outer, inner));
    EVERY_WAY.into_iter().flat_map(inside).collect()
}

/// A deadline must not be counted anew from the start of each nested call.
#[test]
fn the_second_nested_call_has_the_time_left_by_the_first() {
    const USED: u64 = 20;
    for (outer_way, inner_way) in pairs() {
        let outer = limit("budgets::outer", LONG);
        let outcome = outer_way.run(&outer, move |_| {
            // Each nested call reads the time left when it starts.
            let left = [(); 2].map(|()| {
                let inner = limit("budgets::inner", LONG * 10);
                let outcome = inner_way.run(&inner, |token| {
                    let left = token.remaining();
                    assert!(Deadline::current().remaining() <= left);
                    thread::sleep(Duration::from_millis(USED));
                    Ok::<_, TimeoutError>(left)
                });
                outcome
                    .success()
                    .flatten()
                    .expect("the nested call has a deadline")
            });
            Ok::<_, TimeoutError>(left)
        });
        let [first, second] = outcome.success().expect("the call has enough time");
        let budget = Duration::from_millis(LONG);
        let rest = Duration::from_millis(LONG - USED);
        assert!(first <= budget, "{inner_way:?} in {outer_way:?}: {first:?}");
        assert!(second <= rest, "{inner_way:?} in {outer_way:?}: {second:?}");
    }
}

/// Paused time advances only by the time that the calls use.
#[tokio::test(start_paused = true)]
async fn in_paused_time_the_second_nested_call_has_exactly_the_time_left() {
    for outer_way in [Way::AsyncInline, Way::AsyncTask] {
        for inner_way in [Way::AsyncInline, Way::AsyncTask] {
            let outer = outer_way.start(&limit("budgets::virtual", 1_000), move |_| async move {
                let inner = limit("budgets::inside", LONG);
                let first = inner_way.start(&inner, |token| async move {
                    let left = token.remaining();
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    Ok::<_, TimeoutError>(left)
                });
                let first = first.await.success().flatten();
                let second = inner_way.start(&inner, |token| async move {
                    Ok::<_, TimeoutError>(token.remaining())
                });
                Ok::<_, TimeoutError>([first, second.await.success().flatten()])
            });
            let left = outer.await.success().expect("the call has enough time");
            // Tokio's timers have a resolution of one millisecond and are late by at most that.
            let [first, second] = left.map(|left| left.expect("a deadline").as_millis());
            assert!(
                first == 1_000 && (698..=700).contains(&second),
                "{inner_way:?} in {outer_way:?}: {first}, {second}"
            );
        }
    }
}

/// Retries must stop at the deadline of the call that makes them.
#[test]
fn a_call_that_retries_timeouts_ends_at_its_own_limit() {
    let pairs = pairs();
    run_concurrently(AT_ONCE, pairs.len(), |row| {
        let (outer_way, inner_way) = pairs[row];
        let (sender, causes) = mpsc::channel();
        let outer = limit("budgets::retries", brief() * 2);
        let outcome = outer_way.run(&outer, move |_| {
            let start = Instant::now();
            while start.elapsed() < SOON {
                let inner = limit("budgets::attempt", brief() / 4);
                let outcome = inner_way.run(&inner, |token| until_cancelled(&token));
                sender.send(cause(&outcome)).unwrap();
                if cause(&outcome) == Some(Cause::DeadlineExceeded) {
                    return Result::from(outcome);
                }
            }
            panic!("the call never ended");
        });
        let what = format!("{inner_way:?} in {outer_way:?}");
        assert_eq!(cause(&outcome), Some(Cause::TimedOut), "{what}");
        let mut causes: Vec<_> = causes.into_iter().collect();
        assert_eq!(causes.pop(), Some(Some(Cause::DeadlineExceeded)), "{what}");
        assert!(!causes.is_empty(), "{what}");
        assert!(
            causes.iter().all(|&cause| cause == Some(Cause::TimedOut)),
            "{what}: {causes:?}"
        );
    });
}

/// Without a check of its token, the call ends because no nested call starts after the deadline.
#[test]
fn a_call_that_retries_errors_ends_at_its_own_limit() {
    let pairs = pairs();
    run_concurrently(4, pairs.len(), |row| {
        let (outer_way, inner_way) = pairs[row];
        let (sender, last) = mpsc::channel();
        let outer = limit("budgets::errors", brief());
        let outcome = outer_way.run(&outer, move |_| {
            let start = Instant::now();
            while start.elapsed() < SOON {
                let inner = limit("budgets::failure", LONG);
                let outcome = inner_way.run(&inner, |_| {
                    thread::sleep(Duration::from_millis(1));
                    Err::<u32, _>("connection refused")
                });
                if !matches!(outcome, Outcome::Failure(_)) {
                    sender.send(cause(&outcome)).unwrap();
                    return Err::<(), _>("given up");
                }
            }
            panic!("the call never ended");
        });
        let what = format!("{inner_way:?} in {outer_way:?}");
        assert_eq!(cause(&outcome), Some(Cause::TimedOut), "{what}");
        let last = last.recv_timeout(SOON);
        assert_eq!(last, Ok(Some(Cause::DeadlineExceeded)), "{what}");
    });
}

/// A nested call must not report a timeout of its own, since its caller might retry that.
#[test]
fn of_equal_limits_only_the_enclosing_call_reports_a_timeout() {
    let pairs = pairs();
    run_concurrently(AT_ONCE, pairs.len(), |row| {
        let (outer_way, inner_way) = pairs[row];
        let (sender, inside) = mpsc::channel();
        let outcome = outer_way.run(&limit("budgets::equal", brief()), move |_| {
            let inner = limit("budgets::equal", brief());
            let outcome = inner_way.run(&inner, |token| until_cancelled(&token));
            sender.send(cause(&outcome)).unwrap();
            Result::from(outcome)
        });
        let found = (cause(&outcome), inside.recv_timeout(SOON));
        assert_eq!(
            found,
            (Some(Cause::TimedOut), Ok(Some(Cause::DeadlineExceeded))),
            "{inner_way:?} in {outer_way:?}"
        );
    });
}

/// All deadlines are the same instant.
#[tokio::test(start_paused = true)]
async fn in_paused_time_of_three_equal_limits_only_the_outermost_reports_a_timeout() {
    const ON_THE_CALLERS_CLOCK: [Way; 2] = [Way::AsyncInline, Way::AsyncTask];
    // No call is cut off while a nested one ends.
    let grace = Duration::MAX;
    for outer_way in ON_THE_CALLERS_CLOCK {
        for middle_way in ON_THE_CALLERS_CLOCK {
            for inner_way in ON_THE_CALLERS_CLOCK {
                let (sender, inside) = mpsc::channel();
                let equal = limit("budgets::three", 60_000).with_grace(grace);
                let call = outer_way.start(&equal.clone(), move |_| async move {
                    let (equal, send) = (equal.clone(), sender.clone());
                    let middle = middle_way.start(&equal.clone(), move |_| async move {
                        let inner = inner_way.start(&equal, |token| async move {
                            token.cancelled().await;
                            token.check()
                        });
                        let inner = inner.await;
                        send.send(cause(&inner)).unwrap();
                        Result::from(inner)
                    });
                    let middle = middle.await;
                    sender.send(cause(&middle)).unwrap();
                    Result::from(middle)
                });
                let what = format!("{inner_way:?} in {middle_way:?} in {outer_way:?}");
                assert_eq!(cause(&call.await), Some(Cause::TimedOut), "{what}");
                let found: Vec<_> = inside.into_iter().collect();
                assert_eq!(found, [Some(Cause::DeadlineExceeded); 2], "{what}");
            }
        }
    }
}

/// Each of the three limits is the nearest one in turn.
#[test]
fn the_nearest_of_three_limits_is_a_timeout_of_its_call_and_a_deadline_below() {
    let mut rows = Vec::new();
    for (outer, middle) in pairs() {
        rows.extend(EVERY_WAY.map(|inner| ([outer, middle, inner], rows.len() % 3)));
    }
    rows.extend(
        EVERY_WAY
            .iter()
            .flat_map(|&way| (0..3).map(move |nearest| ([way; 3], nearest))),
    );
    run_concurrently(AT_ONCE, rows.len(), |row| {
        let (ways, nearest) = rows[row];
        let (sender, inside) = mpsc::channel();
        level(ways, nearest, 0, &sender);
        drop(sender);
        let mut found: Vec<(usize, Option<Cause>)> = inside.into_iter().collect();
        found.sort_by_key(|&(level, _)| level);
        let expected = [0, 1, 2].map(|level| {
            let cause = match level {
                _ if level < nearest => None,
                _ if level == nearest => Some(Cause::TimedOut),
                _ => Some(Cause::DeadlineExceeded),
            };
            (level, cause)
        });
        assert_eq!(found, expected, "{ways:?}, {nearest}");
    });
}

/// Makes the call of `level` and its nested calls. Each one sends its cause.
fn level(
    ways: [Way; 3],
    nearest: usize,
    level: usize,
    sender: &mpsc::Sender<(usize, Option<Cause>)>,
) {
    let ms = if level == nearest { brief() } else { LONG };
    let send = sender.clone();
    let outcome = ways[level].run(&limit("budgets::level", ms), move |token| {
        if level < 2 {
            self::level(ways, nearest, level + 1, &send);
        }
        if level < nearest {
            // A timeout of a nested call does not end this call.
            token.check()
        } else {
            drop(send);
            until_cancelled(&token).map(drop)
        }
    });
    sender.send((level, cause(&outcome))).unwrap();
}

/// Nested calls share the grace of the enclosing call instead of adding their own.
#[test]
fn a_nested_call_shares_the_grace_of_the_enclosing_call() {
    for way in ABANDONING {
        let (gate, (sender, inside)) = (Gate::new(), mpsc::channel());
        let held = gate.clone();
        let grace = Duration::from_millis(100);
        let outer = limit("budgets::around", brief()).with_grace(grace);
        let outcome = Way::SyncInline.run(&outer, move |_| {
            let inner = limit("budgets::graceful", LONG).with_grace(Duration::from_secs(60));
            let outcome = way.run(&inner, move |_| {
                held.wait();
                Ok::<_, TimeoutError>(())
            });
            sender.send(outcome.timeout_error().cloned()).unwrap();
            Result::from(outcome)
        });
        let inner = inside.recv_timeout(SOON).unwrap().unwrap();
        gate.open();
        assert!(inner.is_deadline_exceeded(), "{way:?}: {inner:?}");
        let outer = outcome.timeout_error().unwrap();
        assert!(outer.is_timed_out(), "{way:?}: {outer:?}");
        assert!(
            outer.elapsed() >= Duration::from_millis(brief()) + grace,
            "{way:?}"
        );
        assert!(inner.elapsed() < SOON, "{way:?}: {inner:?}");
    }
}
