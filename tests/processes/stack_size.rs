//! The stack size of workers.

use crate::{concurrent, program, support};
use std::process::{Command, Stdio};

use support::limit;
use timeout_runtime::{Outcome, TimeoutError};

/// A program that recurses four mebibytes deep on a worker.
fn recurse() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recurse"));
    command.env_remove("RUST_MIN_STACK").stdout(Stdio::null());
    command
}

const ENOUGH: &str = "16777216";

/// Code that fits on the main thread used to overflow on a worker, without a setting to change
/// that.
#[test]
fn the_stack_size_of_workers_can_be_set() {
    let (status, said) = program::run(recurse().arg(ENOUGH));
    assert!(status.success(), "{status}: {said}");
}

/// Workers used to ignore `RUST_MIN_STACK`.
#[test]
fn the_environment_sets_the_stack_size_of_workers() {
    let (status, said) = program::run(recurse().env("RUST_MIN_STACK", ENOUGH));
    assert!(status.success(), "{status}: {said}");
}

/// Workers must have the default stack of any thread; otherwise the two tests above show nothing.
#[test]
fn a_worker_has_the_default_stack_of_a_thread() {
    let (status, said) = program::run(&mut recurse());
    assert!(!status.success(), "four mebibytes fit");
    assert!(said.contains("overflow"), "{said}");
}

/// Nested calls must not share one stack, or one worker.
#[test]
fn nested_sync_calls_each_have_a_worker() {
    fn nest(depth: u32) -> Outcome<u32, TimeoutError> {
        limit("stack_size::nest", 60_000).outcome(move |_| match depth {
            0 => Ok(0),
            _ => Ok(Result::from(nest(depth - 1))? + 1),
        })
    }

    let outcome = concurrent::must_return(|| nest(63));
    assert!(matches!(outcome, Outcome::Success(63)), "{outcome:?}");
}
