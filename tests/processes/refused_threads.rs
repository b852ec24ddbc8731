//! The system refuses every thread from the first call on, including the timer thread: calls that
//! need no thread work, calls that need one fail immediately.

use crate::program;
use std::process::{Command, Stdio};

/// No system can provide such a stack.
const IMPOSSIBLE: &str = "9000000000000000000";

/// An async wait for a token with a deadline, or for a child of one, used to hang for ever.
// Fails if the runtime does not try again to arm the timer of a token, or of the tokens above it.
// Fails if an async or a blocking wait does not try that.
#[test]
fn without_any_thread_calls_end_in_time_and_tokens_are_cancelled() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starved"));
    command.env("RUST_MIN_STACK", IMPOSSIBLE);
    let (status, said) = program::run(command.stdout(Stdio::null()));
    assert!(status.success(), "{status}, {said}");
}
