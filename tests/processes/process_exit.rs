//! A process ends when `main` ends, even with abandoned operations and blocked workers.

use crate::{concurrent, program, support};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::short;
use support::{Gate, SOON, limit};
use timeout_runtime::{Outcome, TimeoutError, workers};

/// Runs of each program. To run it 500 times:
/// `TIMEOUT_EXIT_RUNS=500 cargo test -p timeout-tests --test processes process_exit`.
fn runs() -> usize {
    std::env::var("TIMEOUT_EXIT_RUNS").map_or(50, |runs| runs.parse().expect("a number"))
}

/// A process that waits for its operations takes an hour; any other one takes less than this.
const PROMPT: Duration = Duration::from_secs(30);

/// Runs the program repeatedly; it must end promptly with `code`, and print nothing unexpected.
fn assert_exits(how: &str, operations: &str, code: i32) {
    concurrent::run_concurrently(4, runs(), |run| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_exits"));
        command.args([how, operations]).env_remove("RUST_BACKTRACE");
        // In every second run the program is blocked in a write: nothing reads its output.
        let is_stuck = run.is_multiple_of(2);
        command.stdout(if is_stuck {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        let start = Instant::now();
        let (status, said) = program::run(&mut command);
        let what = format!("{how}, {operations}, run {run}: {status}, {said}");
        assert_eq!(status.code(), Some(code), "{what}");
        assert!(start.elapsed() < PROMPT, "{what}");
        for fatal in ["abort", "fatal", "overflow", "poison"] {
            assert!(!said.contains(fatal), "{what}");
        }
        assert_eq!(said.contains("panicked"), how == "panic", "{what}");
    });
}

/// Exit hooks must not join workers that never end.
#[test]
fn returning_from_main_ends_the_process() {
    assert_exits("return", "blocked", 0);
}

/// The same for `std::process::exit`.
#[test]
fn exit_ends_the_process_with_its_code() {
    assert_exits("exit", "blocked", 3);
}

/// The same while `main` unwinds.
#[test]
fn a_panic_in_main_ends_the_process_with_its_code() {
    assert_exits("panic", "blocked", 101);
}

/// Worker threads cut off at exit must not crash, nor change the exit code.
#[test]
fn a_worker_in_the_middle_of_a_write_does_not_delay_the_exit() {
    assert_exits("return", "writing", 0);
    assert_exits("exit", "writing", 3);
    assert_exits("panic", "writing", 101);
}

/// A Tokio runtime around `main` must not wait for operations when it shuts down.
#[test]
fn a_runtime_around_main_does_not_wait_for_operations() {
    assert_exits("return", "inside-tokio", 0);
    assert_exits("exit", "inside-tokio", 3);
}

/// The timer of a finished call must not keep the process alive.
#[test]
fn the_limit_of_a_finished_call_does_not_delay_the_exit() {
    assert_exits("return", "ended", 0);
}

/// `drain` must wait for operations that end in time, and for no others.
#[test]
fn a_drain_waits_only_for_operations_that_end_in_time() {
    let (ends, stuck) = (Gate::new(), Gate::new());
    for gate in [&ends, &stuck] {
        let body = gate.clone();
        let outcome = limit("process_exit::drain", short()).outcome(move |_| {
            body.wait();
            Ok::<_, TimeoutError>(())
        });
        assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
    }
    let brief = Duration::from_millis(200);
    let start = Instant::now();
    assert_eq!(concurrent::must_return(move || workers::drain(brief)), 2);
    assert!(start.elapsed() >= brief);

    ends.open();
    let start = Instant::now();
    assert_eq!(workers::drain(brief), 1);
    assert!(start.elapsed() >= brief);

    stuck.open();
    let start = Instant::now();
    assert_eq!(workers::drain(3 * SOON), 0);
    assert!(start.elapsed() < SOON);
}
