//! How much stack an operation has on a worker.

use crate::{crowd, program, support};
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

/// Guards against programs that worked on the main thread and overflow on a worker, with no way to help it.
#[test]
fn the_stack_size_of_workers_can_be_set() {
    let (status, said) = program::run(recurse().arg(ENOUGH));
    assert!(status.success(), "{status}: {said}");
}

/// Guards against workers that are deaf to the setting which every other thread heeds.
#[test]
fn the_environment_sets_the_stack_size_of_workers() {
    let (status, said) = program::run(recurse().env("RUST_MIN_STACK", ENOUGH));
    assert!(status.success(), "{status}: {said}");
}

/// Guards against a default other than the one of every thread: the two tests above would then show nothing.
#[test]
fn by_default_a_worker_has_the_stack_of_any_thread() {
    let (status, said) = program::run(&mut recurse());
    assert!(!status.success(), "four mebibytes fit");
    assert!(said.contains("overflow"), "{said}");
}

/// Guards against calls within calls that share one stack, or one worker.
#[test]
fn sync_calls_nest_as_deep_as_there_are_workers() {
    fn nest(depth: u32) -> Outcome<u32, TimeoutError> {
        limit("stack_size::nest", 60_000).outcome(move |_| match depth {
            0 => Ok(0),
            _ => Ok(nest(depth - 1).into_result()? + 1),
        })
    }

    let outcome = crowd::ends(|| nest(63));
    assert!(matches!(outcome, Outcome::Success(63)), "{outcome:?}");
}
