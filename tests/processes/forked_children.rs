//! A forked child has none of the pool's threads: its calls run or are refused immediately, and it
//! can exit.
#![cfg(unix)]

use crate::program;
use std::process::{Command, Stdio};

fn forks(when: &str, rounds: usize) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forks"));
    command.args([when, &rounds.to_string()]);
    let (status, said) = program::run(command.stdout(Stdio::null()));
    assert!(status.success(), "{when}: {status}, {said}");
}

/// A call in a child used to wait for its whole limit for a missing worker, or for ever if the
/// pool's lock was held at the fork.
// Fails if the runtime, or a caller that waits, does not detect that its process is a forked child.
#[test]
fn a_child_refuses_calls_that_need_a_worker_immediately() {
    forks("busy", 80);
}

/// A child used to be refused workers although the parent had none.
// Fails if every process counts as a forked child.
#[test]
fn a_child_forked_before_the_first_call_starts_workers() {
    forks("first", 3);
}
