//! Where the system refuses every thread, the timer's too, from the first call on: what needs none works, what needs one says so at once.

use crate::program;
use std::process::{Command, Stdio};

/// No system gives a thread such a stack.
const IMPOSSIBLE: &str = "9000000000000000000";

/// Who waited in async code for a token with a deadline, or for one below it, was never woken.
#[test]
fn without_any_thread_calls_end_in_time_and_tokens_fire() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starved"));
    command.env("RUST_MIN_STACK", IMPOSSIBLE);
    let (status, said) = program::run(command.stdout(Stdio::null()));
    assert!(status.success(), "{status}, {said}");
}
