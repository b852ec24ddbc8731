//! Clocks that are dropped, tests that panic, and steps and numbers out of the ordinary.

use crate::own_process::in_own_process;
use crate::support::Gate;
use crate::{new_clock, secs};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::Duration;

use timeout_runtime::workers::{self, Settings};
use timeout_runtime::{CancelToken, Deadline, within, within_blocking};

// Fails if a wait on a clock that is over never ends.
#[test]
fn every_deadline_on_a_clock_that_is_dropped_has_passed() {
    let clock = new_clock();
    let ended = Gate::new();
    let deadline = clock.run(|| {
        let ended = ended.clone();
        let error = within_blocking(secs(5), move |token| {
            let _ = token.wait_timeout(Duration::MAX);
            // Abandoned, it waits on the clock for another hour.
            CancelToken::new().sleep(secs(3600)).unwrap();
            ended.open();
        });
        assert!(error.is_err());
        Deadline::after(secs(60))
    });
    assert!(!ended.is_open());
    assert!(!deadline.has_passed());
    drop(clock);
    ended.wait();
    assert!(deadline.has_passed());
}

#[test]
fn a_scope_keeps_its_clock_going() {
    let scope = {
        let clock = new_clock();
        clock.scope(within(secs(5), std::future::pending::<()>()))
    };
    let error = futures::executor::block_on(scope).unwrap_err();
    assert_eq!(error.elapsed(), secs(5));
}

#[test]
fn enormous_steps_end_at_the_last_instant() {
    let clock = new_clock();
    let call = clock.spawn(|| {
        within_blocking(secs(100 * 365 * 86_400), |token| {
            token.wait_timeout(Duration::MAX)
        })
    });
    clock.advance(Duration::MAX);
    assert!(call.join().unwrap().is_err());
    let last = clock.now();
    assert!(last > secs(400 * 365 * 86_400));
    clock.advance(Duration::MAX);
    clock.advance(secs(1));
    assert_eq!(clock.now(), last);
    clock.run(|| {
        assert_eq!(Deadline::after(secs(1)), Deadline::never());
        assert_eq!(CancelToken::new().sleep(Duration::ZERO), Ok(()));
    });
}

#[test]
fn a_panic_of_a_test_passes_through_its_clock() {
    let clock = new_clock();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        clock.run(|| {
            let beside = clock.spawn(|| CancelToken::new().sleep(secs(9)));
            mem::forget(beside);
            resume_unwind(Box::new("the test fails"));
        });
    }));
    assert_eq!(
        *panic.unwrap_err().downcast::<&str>().unwrap(),
        "the test fails"
    );
    // The clock goes on.
    clock.run(|| {
        let before = clock.now();
        CancelToken::new().sleep(secs(20)).unwrap();
        assert_eq!(clock.now(), before + secs(20));
    });
}

#[test]
fn a_panic_of_an_operation_passes_through_its_clock() {
    let clock = new_clock();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        clock.run(|| {
            within_blocking(secs(9), |token| {
                token.sleep(secs(3)).unwrap();
                resume_unwind(Box::new("the operation fails"));
            })
        })
    }));
    assert!(panic.is_err());
    assert_eq!(clock.now(), secs(3));
}

// Fails if a future that is leaked keeps the time from moving.
#[test]
fn a_leaked_future_that_waits_does_not_hold_the_time() {
    let clock = new_clock();
    let mut scope = Box::pin(clock.scope(within(secs(5), std::future::pending::<()>())));
    let woken = Gate::new();
    assert!(crate::support::poll_once(&mut scope, &woken).is_pending());
    mem::forget(scope);
    // Time moves to the limit of the leaked call, and wakes it. It then runs, as far as the clock
    // can know, but is never polled.
    assert!(woken.is_open());
    let patient = clock.patience(Duration::from_millis(100));
    patient.advance(secs(10));
    assert_eq!(patient.now(), secs(15));
}

fn thousand_calls() {
    Settings {
        cap: 2000,
        ..Settings::current()
    }
    .apply();
    let clock = new_clock();
    clock.run(|| {
        let calls: Vec<_> = (0..1000_u64)
            .map(|number| {
                clock.spawn(move || {
                    within_blocking(secs(1 + number % 50), |token| token.sleep(secs(25)))
                })
            })
            .collect();
        for (number, call) in (0..).zip(calls) {
            let limit = secs(1 + number % 50);
            match call.join().unwrap() {
                Ok(slept) => assert!(limit > secs(25) && slept.is_ok(), "{limit:?}"),
                Err(error) => assert!(limit <= secs(25) && error.elapsed() == limit, "{error:?}"),
            }
        }
        assert_eq!(clock.now(), secs(25));
        assert_eq!(workers::drain(secs(60)), 0);
    });
}

#[test]
fn a_thousand_operations_share_a_clock() {
    in_own_process(|| {
        thousand_calls();
    });
}

/// Calls that wait for a worker wait in virtual time.
#[test]
fn a_queued_call_starts_at_the_instant_at_which_a_worker_is_free() {
    in_own_process(|| {
        Settings {
            cap: 2,
            ..Settings::current()
        }
        .apply();
        let clock = new_clock();
        clock.run(|| {
            let calls: Vec<_> = (0..6)
                .map(|_| {
                    let inside = clock.clone();
                    clock.spawn(move || {
                        within_blocking(secs(60), move |token| {
                            let start = inside.now();
                            token.sleep(secs(10)).unwrap();
                            start
                        })
                    })
                })
                .collect();
            let mut starts: Vec<_> = calls.into_iter().map(|call| call.join().unwrap()).collect();
            starts.sort_by_key(|start| start.clone().ok());
            assert_eq!(starts, [0, 0, 10, 10, 20, 20].map(|start| Ok(secs(start))));
        });
    });
}

/// A thread that is not on the clock uses the real one, also inside the test.
#[test]
fn a_thread_without_a_context_is_on_the_real_clock() {
    let clock = new_clock();
    clock.run(|| {
        let real = thread::spawn(|| {
            let deadline = Deadline::after(secs(3600));
            (
                deadline,
                within_blocking(secs(60), |token| token.remaining().unwrap()),
            )
        });
        let (deadline, left) = real.join().unwrap();
        assert!(left.unwrap() <= secs(60));
        clock.advance(secs(2 * 3600));
        assert!(!deadline.has_passed());
        let virtually = within_blocking(secs(1), |token| token.sleep(secs(2)));
        assert!(virtually.is_err_and(|error| error.is_timed_out()));
    });
}
