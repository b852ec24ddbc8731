//! `cancel_at_every_check` cancels a call at each check, wait and pending await, one per run.

// Tests of this file fail if a kind of check is not counted, if a thread or a task does not run on
// behalf of the test, or if another call than the outermost one is cancelled.

use crate::support::{LONG, Way, limit};
use crate::{new_clock, secs};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use timeout_runtime::testing::{
    CancelPoint, cancel_at_check, cancel_at_check_async, cancel_at_every_check,
    cancel_at_every_check_async,
};
use timeout_runtime::{
    CallContext, CancelToken, Outcome, TimeoutError, check, timeout, within, within_blocking,
};
use tokio::task::yield_now;

fn lines(points: &[CancelPoint]) -> Vec<Option<u32>> {
    points
        .iter()
        .map(|point| point.place.map(Location::line))
        .collect()
}

#[timeout(name = "every_check::kinds", secs = LONG)]
fn every_kind_of_check() -> Result<(), TimeoutError> {
    let (sender, receiver) = mpsc::channel();
    let (lock, changed) = (Mutex::new(()), Condvar::new());
    sender.send(()).unwrap();
    let first = line!() + 1;
    check()?;
    cancel_token.check()?;
    let _ = cancel_token.is_cancelled();
    let _ = cancel_token.cause();
    cancel_token.sleep(Duration::ZERO)?;
    let _ = cancel_token.wait_timeout(Duration::ZERO);
    let _ = cancel_token.recv(&receiver)?;
    drop(cancel_token.wait_while(&changed, lock.lock().unwrap(), |()| false)?);
    cancel_token.wait_until(|| Some(()))?;
    cancel_token.interrupt_with(|| (), || ())?;
    cancel_token.child().check()?;
    FIRST.lock().unwrap().get_or_insert(first);
    Ok(())
}

static FIRST: Mutex<Option<u32>> = Mutex::new(None);

#[test]
fn every_kind_of_check_is_a_point_with_its_line() {
    let mut cancelled = 0;
    let points = cancel_at_every_check(|| {
        let result = every_kind_of_check();
        cancelled += u32::from(result.is_err_and(|error| error.is_cancelled()));
    });
    let first = FIRST.lock().unwrap().unwrap();
    assert_eq!(
        lines(&points),
        (first..first + 11).map(Some).collect::<Vec<_>>()
    );
    // A value that is dropped unread may end a cancelled operation with a success.
    assert!(cancelled >= 9, "{cancelled}");
    let place = points[1].place.unwrap().to_string();
    assert_eq!(
        points[1].to_string(),
        format!("point 2: `every_check::kinds` checks its token at {place}")
    );
}

/// Adds to a sum, and takes it back at the end.
fn add_and_take_back(
    token: &CancelToken,
    sum: &Mutex<u32>,
    forgets: bool,
) -> Result<(), TimeoutError> {
    for _ in 0..3 {
        *sum.lock().unwrap() += 1;
        let checked = token.check();
        if checked.is_err() && forgets {
            return checked;
        }
        *sum.lock().unwrap() -= 1;
        checked?;
    }
    Ok(())
}

#[test]
fn a_fault_in_the_cleanup_is_found_in_every_place() {
    let policy = limit("every_check::places", LONG);
    for way in [Way::SyncWorker, Way::SyncInline] {
        for forgets in [false, true] {
            let test = || {
                let sum = Arc::new(Mutex::new(0));
                let inside = Arc::clone(&sum);
                let outcome = way.run(&policy, move |token| {
                    add_and_take_back(&token, &inside, forgets)
                });
                drop(outcome);
                // A caller that has left its operation would see the sum before it is taken back.
                if *sum.lock().unwrap() != 0 {
                    resume_unwind(Box::new("the sum is wrong"));
                }
            };
            let points = catch_unwind(AssertUnwindSafe(|| cancel_at_every_check(test)));
            assert_eq!(points.is_err(), forgets, "{way:?}");
            if let Ok(points) = points {
                assert_eq!(points.len(), 3, "{way:?}");
            }
            let alone = catch_unwind(AssertUnwindSafe(|| cancel_at_check(2, test)));
            assert_eq!(alone.is_err(), forgets, "{way:?}");
        }
    }
}

#[timeout(name = "every_check::outer", secs = LONG)]
fn outer(log: Arc<Mutex<Vec<&'static str>>>) -> Result<(), TimeoutError> {
    let inside = Arc::clone(&log);
    let nested = within_blocking(secs(LONG), move |token| {
        token
            .check()
            .inspect_err(|_| inside.lock().unwrap().push("nested"))
    });
    let nested = nested.and_then(|checked| checked);
    if let Err(error) = cancel_token.check() {
        log.lock().unwrap().push("outer");
        return Err(error);
    }
    nested
}

#[test]
fn the_outermost_call_is_cancelled_at_the_checks_of_nested_calls() {
    let mut logs = Vec::new();
    let points = cancel_at_every_check(|| {
        let log = Arc::default();
        let _ = outer(Arc::clone(&log));
        logs.push(log.lock().unwrap().clone());
    });
    assert_eq!(points.len(), 2);
    assert!(
        points
            .iter()
            .all(|point| point.call == "every_check::outer")
    );
    assert_eq!(logs, [vec!["nested", "outer"], vec!["outer"], vec![]]);
}

#[test]
fn the_call_around_the_test_is_not_cancelled() {
    let inside = within_blocking(secs(LONG), |token| {
        let points = cancel_at_every_check(|| {
            let _ = within_blocking(secs(LONG), |token| token.check());
        });
        (points.len(), token.is_cancelled())
    });
    assert_eq!(inside, Ok((1, false)));
}

#[test]
fn an_operation_that_sleeps_for_hours_is_cancelled_at_each_sleep() {
    let clock = new_clock();
    let points = clock.run(|| {
        cancel_at_every_check(|| {
            let start = clock.now();
            let slept = within_blocking(secs(100_000), |token| {
                for _ in 0..4 {
                    token.sleep(secs(3600))?;
                }
                Ok::<_, TimeoutError>(())
            });
            let hours = clock.now().saturating_sub(start).as_secs() / 3600;
            assert_eq!(hours == 4, slept.is_ok_and(|slept| slept.is_ok()));
        })
    });
    assert_eq!(points.len(), 4);
    assert_eq!(clock.now(), secs(3600 * (1 + 2 + 3 + 4)));
}

#[timeout(name = "every_check::awaits", secs = LONG)]
async fn three_awaits(ended: &Mutex<u32>) -> Result<(), TimeoutError> {
    for _ in 0..3 {
        yield_now().await;
        *ended.lock().unwrap() += 1;
    }
    Ok(())
}

#[timeout(name = "every_check::around", secs = LONG)]
async fn around(ended: &Mutex<u32>) -> Result<(), TimeoutError> {
    three_awaits(ended).await
}

#[tokio::test]
async fn every_pending_await_is_a_point() {
    let mut awaits = Vec::new();
    let points = cancel_at_every_check_async(async || {
        let ended = Mutex::new(0);
        // Nested calls are pending together.
        let result = around(&ended).await;
        let ended = ended.into_inner().unwrap();
        awaits.push((ended, result.is_ok()));
    });
    let points = points.await;
    assert_eq!(lines(&points), [None; 3]);
    assert_eq!(
        points[2].to_string(),
        "point 3: `every_check::around` is pending"
    );
    // Each of the two calls polls once more after the cancellation, so two more awaits end.
    assert_eq!(awaits, [(2, false), (3, true), (3, true), (3, true)]);
}

#[tokio::test]
async fn a_fault_in_async_cleanup_is_found_in_every_place() {
    let policy = limit("every_check::async", LONG);
    for way in [Way::AsyncInline, Way::AsyncTask, Way::AsyncWorker] {
        for forgets in [false, true] {
            let test = || {
                let call = policy.clone();
                async move {
                    let sum = Arc::new(Mutex::new(0));
                    let inside = Arc::clone(&sum);
                    let outcome: Outcome<(), TimeoutError> = way
                        .start(&call, move |token| async move {
                            yield_now().await;
                            add_and_take_back(&token, &inside, forgets)
                        })
                        .await;
                    drop(outcome);
                    if *sum.lock().unwrap() != 0 {
                        resume_unwind(Box::new("the sum is wrong"));
                    }
                }
            };
            let points = AssertUnwindSafe(cancel_at_every_check_async(test));
            let points = futures::FutureExt::catch_unwind(points).await;
            assert_eq!(points.is_err(), forgets, "{way:?}");
            if let Ok(points) = points {
                assert_eq!(points.len(), 4, "{way:?}");
            }
            let alone = AssertUnwindSafe(cancel_at_check_async(3, test));
            let alone = futures::FutureExt::catch_unwind(alone).await;
            assert_eq!(alone.is_err(), forgets, "{way:?}");
        }
    }
}

#[test]
fn checks_in_a_context_on_another_thread_are_points() {
    let points = cancel_at_every_check(|| {
        within_blocking(secs(LONG), |_token| {
            let context = CallContext::current();
            let helper = std::thread::spawn(move || context.run(check));
            helper.join().unwrap()
        })
    });
    assert_eq!(points.len(), 1);
}

#[test]
fn a_test_without_checks_runs_once() {
    let mut runs = 0;
    assert_eq!(cancel_at_every_check(|| runs += 1), []);
    let ready = cancel_at_every_check_async(|| within(secs(LONG), async {}));
    assert_eq!(futures::executor::block_on(ready), []);
    assert_eq!(runs, 1);
}
