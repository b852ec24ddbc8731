//! A forked child has none of the pool's threads: its calls answer or are refused at once, and it can end.
#![cfg(unix)]

use crate::program;
use std::process::{Command, Stdio};

fn forks(when: &str, rounds: usize) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forks"));
    command.args([when, &rounds.to_string()]);
    let (status, said) = program::run(command.stdout(Stdio::null()));
    assert!(status.success(), "{when}: {status}, {said}");
}

/// A call in a child had waited for its whole limit for a worker that was not there, and for good if the pool's lock was held at the fork.
#[test]
fn a_call_that_needs_a_worker_is_refused_at_once() {
    forks("busy", 80);
}

/// Guards against children that are refused workers although none were left behind.
#[test]
fn a_child_forked_before_the_first_call_has_workers_of_its_own() {
    forks("first", 3);
}
