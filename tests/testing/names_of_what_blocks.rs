//! An operation that blocks elsewhere is named, with its thread and its last check.

// Tests of this file fail if nothing watches a clock, if the report leaves a part out, or if
// `advance` waits without end.

use crate::secs;
use crate::support::Gate;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use timeout_runtime::testing::TestClock;
use timeout_runtime::{CancelToken, TimeoutError, timeout, within_blocking, workers};

/// The text with which `test` panics.
fn panic_of<T>(test: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(test))
        .err()
        .expect("the test panics");
    *panic.downcast::<String>().expect("it has a text")
}

const LINE_OF_CHECK: u32 = line!() + 4;

#[timeout(name = "names::stuck", secs = 30)]
fn stuck(gate: Gate) -> Result<(), TimeoutError> {
    cancel_token.check()?;
    gate.wait();
    Ok(())
}

#[test]
fn an_operation_that_blocks_elsewhere_fails_the_test_with_its_name() {
    let clock = TestClock::new().patience(Duration::from_millis(200));
    let gate = Gate::new();
    let text = panic_of(|| clock.run(|| stuck(gate.clone())));
    gate.open();
    for part in [
        "time cannot move",
        "blocks elsewhere: operation `names::stuck` on thread `timeout-",
        &format!("last check at tests/testing/names_of_what_blocks.rs:{LINE_OF_CHECK}:"),
        "waits: `TestClock::run` at tests/testing/names_of_what_blocks.rs:",
        "on thread `names_of_what_blocks::an_operation_",
        "the next deadline passes in 30s",
    ] {
        assert!(text.replace('\\', "/").contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_test_in_which_everything_waits_without_end_fails() {
    let clock = TestClock::new().patience(Duration::from_millis(200));
    let text = panic_of(|| clock.run(|| CancelToken::new().wait_timeout(Duration::MAX)));
    assert!(
        text.contains("everything on the test clock waits"),
        "{text}"
    );
}

/// The caller gets its error at the limit, however long the operation blocks.
#[test]
fn advance_moves_the_clock_past_an_operation_that_blocks_elsewhere() {
    let clock = TestClock::new().patience(Duration::from_millis(200));
    let gate = Gate::new();
    let call = clock.spawn({
        let gate = gate.clone();
        move || stuck(gate)
    });
    clock.advance(secs(60));
    assert_eq!(call.join().unwrap().unwrap_err().elapsed(), secs(30));
    assert_eq!(clock.now(), secs(60));
    gate.open();
    clock.run(|| assert_eq!(workers::drain(secs(60)), 0));
}

/// The watcher used to count time only, so that work without checks failed its test.
#[test]
fn an_operation_that_checks_its_token_is_not_blocked() {
    let clock = TestClock::new().patience(Duration::from_millis(200));
    let gate = Gate::new();
    let opener = std::thread::spawn({
        let gate = gate.clone();
        move || {
            std::thread::sleep(Duration::from_millis(600));
            gate.open();
        }
    });
    let result = clock.run(|| {
        within_blocking(secs(30), move |token| {
            while !gate.is_open() {
                token.check()?;
            }
            token.sleep(secs(1))
        })
    });
    assert_eq!(result, Ok(Ok(())));
    assert_eq!(clock.now(), secs(1));
    opener.join().unwrap();
}

#[test]
fn a_future_that_is_never_polled_is_named() {
    let clock = TestClock::new().patience(Duration::from_millis(200));
    let text = panic_of(|| {
        clock.run(|| {
            let _never_polled = clock.scope(async {});
            CancelToken::new().sleep(secs(1))
        })
    });
    assert!(
        text.contains("blocks elsewhere: `TestClock::scope` at"),
        "{text}"
    );
}
