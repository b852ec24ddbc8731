//! A process ends when its main function does, whatever its calls have left behind.

use crate::{crowd, program, support};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::short;
use support::{Gate, SOON, limit};
use timeout_runtime::{Outcome, TimeoutError, workers};

/// How often each program is run. `TIMEOUT_EXIT_RUNS=500 cargo test -p timeout-tests --test process_exit` runs it 500 times.
fn runs() -> usize {
    std::env::var("TIMEOUT_EXIT_RUNS").map_or(50, |runs| runs.parse().expect("a number"))
}

/// A process that waits for its leftovers waits for an hour; one that does not needs less than this on any machine.
const AT_ONCE: Duration = Duration::from_secs(30);

/// Runs the program again and again; it must end at once, with `code`, and say no more than it should.
fn leaves(way: &str, leftover: &str, code: i32) {
    crowd::crowd(4, runs(), |run| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leave"));
        command.args([way, leftover]).env_remove("RUST_BACKTRACE");
        // Every other one is stuck in the middle of a write: nobody reads.
        let is_stuck = run.is_multiple_of(2);
        command.stdout(if is_stuck {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        let start = Instant::now();
        let (status, said) = program::run(&mut command);
        let what = format!("{way}, {leftover}, run {run}: {status}, {said}");
        assert_eq!(status.code(), Some(code), "{what}");
        assert!(start.elapsed() < AT_ONCE, "{what}");
        for fatal in ["abort", "fatal", "overflow", "poison"] {
            assert!(!said.contains(fatal), "{what}");
        }
        assert_eq!(said.contains("panicked"), way == "panic", "{what}");
    });
}

/// Guards against exit hooks that join workers that never end.
#[test]
fn returning_from_main_ends_the_process() {
    leaves("return", "blocked", 0);
}

/// Guards against the same on an early way out.
#[test]
fn exit_ends_the_process_with_its_code() {
    leaves("exit", "blocked", 3);
}

/// Guards against the same while main unwinds.
#[test]
fn a_panic_in_main_ends_the_process_with_its_code() {
    leaves("panic", "blocked", 101);
}

/// Guards against threads that crash, or take the process with them, where they are cut off.
#[test]
fn a_worker_in_the_middle_of_a_write_is_cut_off_without_harm() {
    leaves("return", "writing", 0);
    leaves("exit", "writing", 3);
    leaves("panic", "writing", 101);
}

/// Guards against work that the runtime around main waits for when it shuts down.
#[test]
fn a_runtime_around_main_waits_for_nothing() {
    leaves("return", "inside-tokio", 0);
    leaves("exit", "inside-tokio", 3);
}

/// Guards against a timer that keeps the process alive, though its call has long been answered.
#[test]
fn a_far_limit_of_a_call_that_has_ended_holds_nothing_up() {
    leaves("return", "answered", 0);
}

/// Guards against a drain that waits for what never ends, or does not wait for what does.
#[test]
fn a_drain_waits_for_those_that_end_in_time_and_no_longer() {
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
    assert_eq!(crowd::ends(move || workers::drain(brief)), 2);
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
