//! Large arguments and results move between threads by value with little stack, and with the usual
//! outcomes.

#![allow(clippy::large_stack_arrays, clippy::result_large_err)] // Large values are what is tested.

use crate::{program, support};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use support::{ABANDONING, Drops, Gate, SOON, Tracked, eventually, limit, record, short};
use timeout_runtime::{EventKind, Outcome, TimeoutError};

/// Too large to be copied several times on one stack.
#[derive(Debug)]
struct Large {
    bytes: [u8; 64 << 10],
    _tracked: Tracked,
}

impl Large {
    fn new(drops: &Drops) -> Box<Self> {
        Box::new(Self {
            bytes: [7; 64 << 10],
            _tracked: drops.value(),
        })
    }
}

/// The worker's stack used to overflow, where a plain thread of that stack size runs the function.
// Fails if large operations and results do not move in a box.
#[test]
fn large_values_by_value_fit_on_a_worker() {
    for way in ["sync", "takes", "returns", "falls_back", "polled"] {
        let mut large = Command::new(env!("CARGO_BIN_EXE_large"));
        let (status, said) = program::run(
            large
                .arg(way)
                .env_remove("RUST_MIN_STACK")
                .stdout(Stdio::null()),
        );
        assert!(status.success(), "{way}: {status}: {said}");
    }
}

#[test]
fn a_large_result_reaches_its_caller_and_is_dropped_once() {
    for way in ABANDONING {
        let drops = Drops::default();
        let large = Large::new(&drops);
        let outcome = way.run(&limit("large::in_time", 60_000), move |_| {
            Ok::<_, TimeoutError>(*large)
        });
        let large = outcome.success().expect("a result");
        assert_eq!((large.bytes[0], drops.count()), (7, 0), "{way:?}");
        drop(large);
        assert_eq!(drops.count(), 1, "{way:?}");
    }
}

#[test]
fn a_large_error_is_a_failure() {
    for way in ABANDONING {
        let events = record("large::error");
        let drops = Drops::default();
        let large = Large::new(&drops);
        let outcome = way.run(&limit("large::error", 60_000), move |_| {
            Err::<(), _>(*large)
        });
        assert!(matches!(outcome, Outcome::Failure(_)), "{way:?}");
        assert!(
            matches!(events.kinds()[..], [EventKind::Failed(_)]),
            "{way:?}"
        );
        drop(outcome);
        assert_eq!(drops.count(), 1, "{way:?}");
    }
}

#[test]
fn a_late_large_result_is_reported_and_dropped_once() {
    for way in ABANDONING {
        let events = record("large::late");
        let (drops, gate) = (Drops::default(), Gate::new());
        let (large, opened) = (Large::new(&drops), gate.clone());
        let outcome = way.run(&limit("large::late", short()), move |_| {
            opened.wait();
            Ok::<_, TimeoutError>(*large)
        });
        assert!(matches!(outcome, Outcome::TimedOut(_)), "{way:?}");
        assert_eq!(drops.count(), 0, "{way:?}");
        gate.open();
        let kinds = events.wait_for(2);
        assert_eq!(kinds[1], EventKind::AbandonedWorkerSucceeded, "{way:?}");
        eventually("the result is dropped", || drops.count() == 1);
    }
}

#[test]
fn a_late_large_result_is_given_to_on_late() {
    let (sender, given) = mpsc::channel();
    let (drops, gate) = (Drops::default(), Gate::new());
    let (large, opened) = (Large::new(&drops), gate.clone());
    let outcome = limit("large::on_late", short())
        .on_late(move |late: Result<Large, TimeoutError>| sender.send(late.is_ok()).unwrap())
        .outcome(move |_| {
            opened.wait();
            Ok(*large)
        });
    assert!(matches!(outcome, Outcome::TimedOut(_)));
    gate.open();
    assert_eq!(given.recv_timeout(SOON), Ok(true));
    eventually("the result is dropped", || drops.count() == 1);
}

#[test]
fn a_panic_with_large_arguments_reaches_the_caller() {
    for way in ABANDONING {
        let drops = Drops::default();
        let large = Large::new(&drops);
        let call = || {
            way.run(&limit("large::panic", 60_000), move |_| {
                let large = *large;
                assert_eq!(size_of_val(&large.bytes), 0, "a deliberate panic");
                Ok::<_, TimeoutError>(large)
            })
        };
        let panic = catch_unwind(AssertUnwindSafe(call))
            .map(|_| ())
            .unwrap_err();
        let text = panic.downcast_ref::<String>().expect("a message");
        assert!(text.contains("a deliberate panic"), "{way:?}: {text}");
        assert_eq!(drops.count(), 1, "{way:?}");
    }
}
