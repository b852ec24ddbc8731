//! A panic of an operation reaches its caller and affects no other call.

use crate::own_process::in_own_process;
use crate::{concurrent, panics, support};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use support::{SOON, limit};
use timeout_runtime::{CallStatus, Outcome, TimeoutError, workers};

const THREADS: usize = 8;
const CALLS: usize = 1000;

/// The panic payload of an operation.
#[derive(Debug, PartialEq, Eq)]
struct Call(usize);

/// An argument that panics when it is dropped.
struct Argument(usize);

impl Drop for Argument {
    fn drop(&mut self) {
        panic_any(Call(self.0));
    }
}

fn operate(call: usize) -> usize {
    match call % 9 {
        0 => panic_any(Call(call)),
        3 => resume_unwind(Box::new(Call(call))),
        6 => drop(Argument(call)),
        _ => {}
    }
    call
}

/// Makes one call on a worker, sync or async. Returns the panic payload that its caller receives.
fn make(call: usize) -> Result<usize, Call> {
    let start = Instant::now();
    let timeout = limit("panicking_operations", 60_000);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        if call.is_multiple_of(2) {
            let argument = (call % 9 == 6).then(|| Argument(call));
            timeout.outcome(move |_| {
                let result = if argument.is_some() {
                    call
                } else {
                    operate(call)
                };
                drop(argument);
                Ok::<_, TimeoutError>(result)
            })
        } else {
            futures::executor::block_on(
                timeout
                    .on_worker()
                    .outcome_async(move |_| async move { Ok(operate(call)) }),
            )
        }
    }));
    assert!(start.elapsed() < SOON, "call {call} waited for its limit");
    match ended {
        Ok(Outcome::Success(result)) => Ok(result),
        Ok(other) => panic!("{other:?}"),
        Err(payload) => Err(*payload.downcast().expect("the operation's own panic")),
    }
}

/// Starts one worker for each calling thread.
fn warm_up() {
    let barrier = Arc::new(Barrier::new(THREADS));
    concurrent::run_concurrently(THREADS, THREADS, |_| {
        let barrier = Arc::clone(&barrier);
        let outcome = limit("panicking_operations::warm_up", 60_000).outcome(move |_| {
            barrier.wait();
            Ok::<_, TimeoutError>(())
        });
        assert_eq!(outcome.status(), CallStatus::Ok, "{outcome:?}");
    });
}

/// A panic used to end its worker: the caller waited for ever, and later calls found no worker.
#[test]
fn every_caller_receives_its_own_panic_and_no_worker_is_lost() {
    in_own_process(|| {
        panics::record_panics();
        warm_up();
        let before = workers::stats().live;
        concurrent::run_concurrently(THREADS, CALLS, |call| {
            let wanted = if call.is_multiple_of(3) {
                Err(Call(call))
            } else {
                Ok(call)
            };
            assert_eq!(make(call), wanted);
        });
        let after = workers::stats().live;
        assert!(
            (before..=before + THREADS).contains(&after),
            "{before} workers became {after}"
        );
        concurrent::run_concurrently(THREADS, 3 * CALLS / 2, |call| {
            if !call.is_multiple_of(3) {
                assert_eq!(make(call), Ok(call));
            }
        });
    });
}
