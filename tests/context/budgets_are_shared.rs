//! Calls inside a call share its time: what one uses up the next has no more, and no call arms it anew.

use crate::{crowd, support};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crowd::crowd;
use support::{APART, EVERY_WAY, Gate, SOON, Way, limit, short, until_fired};
use timeout_runtime::{Cause, Deadline, Outcome, TimeoutError};

const LONG: u64 = 60_000;
/// So many rows of a table at once.
const AT_ONCE: usize = 10;

/// A limit that passes, and that leaves two calls, one inside the other, time to start before.
fn brief() -> u64 {
    2 * short()
}

/// The cause of an ending without an answer.
fn cause<T, E>(outcome: &Outcome<T, E>) -> Option<Cause> {
    outcome.timeout_error().map(TimeoutError::cause)
}

fn pairs() -> Vec<(Way, Way)> {
    let inside = |outer| EVERY_WAY.into_iter().map(move |inner| (outer, inner));
    EVERY_WAY.into_iter().flat_map(inside).collect()
}

/// Guards against a deadline that is counted anew from the start of each call.
#[test]
fn the_second_call_inside_has_what_the_first_has_left() {
    const USED: u64 = 20;
    for (outer_way, inner_way) in pairs() {
        let outer = limit("budgets::outer", LONG);
        let outcome = outer_way.run(&outer, move |_| {
            // Each finds what is left when it starts.
            let left = [(); 2].map(|()| {
                let inner = limit("budgets::inner", LONG * 10);
                let outcome = inner_way.run(&inner, |token| {
                    let left = token.remaining();
                    assert!(Deadline::current().remaining() <= left);
                    thread::sleep(Duration::from_millis(USED));
                    Ok::<_, TimeoutError>(left)
                });
                outcome.success().flatten().expect("it has a deadline")
            });
            Ok::<_, TimeoutError>(left)
        });
        let [first, second] = outcome.success().expect("there was time enough");
        let budget = Duration::from_millis(LONG);
        let rest = Duration::from_millis(LONG - USED);
        assert!(first <= budget, "{inner_way:?} in {outer_way:?}: {first:?}");
        assert!(second <= rest, "{inner_way:?} in {outer_way:?}: {second:?}");
    }
}

/// Virtual time stands still but for what the calls use.
#[tokio::test(start_paused = true)]
async fn the_second_call_inside_has_exactly_the_rest_by_virtual_time() {
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
            let left = outer.await.success().expect("there was time enough");
            // Tokio's timers count in milliseconds, and are late by one at most.
            let [first, second] = left.map(|left| left.expect("a deadline").as_millis());
            assert!(
                first == 1_000 && (698..=700).contains(&second),
                "{inner_way:?} in {outer_way:?}: {first}, {second}"
            );
        }
    }
}

/// Guards against retries that go on past the end of the call that makes them.
#[test]
fn a_call_that_tries_again_and_again_ends_by_its_own_limit() {
    let pairs = pairs();
    crowd(AT_ONCE, pairs.len(), |row| {
        let (outer_way, inner_way) = pairs[row];
        let (sender, causes) = mpsc::channel();
        let outer = limit("budgets::retries", brief() * 2);
        let outcome = outer_way.run(&outer, move |_| {
            let start = Instant::now();
            while start.elapsed() < SOON {
                let inner = limit("budgets::attempt", brief() / 4);
                let outcome = inner_way.run(&inner, |token| until_fired(&token));
                sender.send(cause(&outcome)).unwrap();
                if cause(&outcome) == Some(Cause::DeadlineExceeded) {
                    return outcome.into_result();
                }
            }
            panic!("it never ended");
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

/// It need not look at its token: what it tries does not start any more.
#[test]
fn a_call_that_tries_again_on_every_error_ends_by_its_own_limit() {
    let pairs = pairs();
    crowd(4, pairs.len(), |row| {
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
            panic!("it never ended");
        });
        let what = format!("{inner_way:?} in {outer_way:?}");
        assert_eq!(cause(&outcome), Some(Cause::TimedOut), "{what}");
        let last = last.recv_timeout(SOON);
        assert_eq!(last, Ok(Some(Cause::DeadlineExceeded)), "{what}");
    });
}

/// Guards against an inner call that claims the time out, so that its caller takes it for one that may be tried again.
#[test]
fn equal_limits_time_out_outside_and_exceed_the_deadline_inside() {
    let pairs = pairs();
    crowd(AT_ONCE, pairs.len(), |row| {
        let (outer_way, inner_way) = pairs[row];
        let (sender, inside) = mpsc::channel();
        let outcome = outer_way.run(&limit("budgets::equal", brief()), move |_| {
            let inner = limit("budgets::equal", brief());
            let outcome = inner_way.run(&inner, |token| until_fired(&token));
            sender.send(cause(&outcome)).unwrap();
            outcome.into_result()
        });
        let found = (cause(&outcome), inside.recv_timeout(SOON));
        assert_eq!(
            found,
            (Some(Cause::TimedOut), Ok(Some(Cause::DeadlineExceeded))),
            "{inner_way:?} in {outer_way:?}"
        );
    });
}

/// The same where all ends are the very same instant.
#[tokio::test(start_paused = true)]
async fn three_equal_limits_end_alike_by_virtual_time() {
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
                        inner.into_result()
                    });
                    let middle = middle.await;
                    sender.send(cause(&middle)).unwrap();
                    middle.into_result()
                });
                let what = format!("{inner_way:?} in {middle_way:?} in {outer_way:?}");
                assert_eq!(cause(&call.await), Some(Cause::TimedOut), "{what}");
                let found: Vec<_> = inside.into_iter().collect();
                assert_eq!(found, [Some(Cause::DeadlineExceeded); 2], "{what}");
            }
        }
    }
}

/// The nearest end of three is in turn that of each.
#[test]
fn three_calls_deep_the_nearest_end_is_a_time_out_where_it_is_set_and_a_deadline_below() {
    let mut rows = Vec::new();
    for (outer, middle) in pairs() {
        rows.extend(EVERY_WAY.map(|inner| ([outer, middle, inner], rows.len() % 3)));
    }
    rows.extend(
        EVERY_WAY
            .iter()
            .flat_map(|&way| (0..3).map(move |nearest| ([way; 3], nearest))),
    );
    crowd(AT_ONCE, rows.len(), |row| {
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

/// Makes the call of `level` and those inside; each tells how it ended.
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
            // A timeout of a nested call is none of this call.
            token.check()
        } else {
            drop(send);
            until_fired(&token).map(drop)
        }
    });
    sender.send((level, cause(&outcome))).unwrap();
}

/// The grace of a call is there for those inside as well, up to the end of the outer one, and not once for each.
#[test]
fn a_call_inside_shares_the_grace_of_the_call_around() {
    for way in APART {
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
            outcome.into_result()
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
