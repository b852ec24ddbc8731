//! `in_own_process`, which many tests use, runs a test without others and reports its failure.

use std::env;
use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::own_process::in_own_process;

/// Set by each of the next two tests. A process that runs both finds it set.
static IS_SET: AtomicBool = AtomicBool::new(false);

#[test]
fn a_test_in_its_own_process_sees_no_state_of_another() {
    in_own_process(|| assert!(!IS_SET.swap(true, Ordering::SeqCst)));
}

#[test]
fn another_test_in_its_own_process_sees_no_state_either() {
    in_own_process(|| assert!(!IS_SET.swap(true, Ordering::SeqCst)));
}

#[test]
#[ignore = "it fails, which the next test expects"]
fn fails() {
    in_own_process(|| {
        println!("printed before");
        panic!("boom {}", black_box(7));
    });
}

#[test]
fn a_failure_in_an_own_process_fails_its_test_and_shows_the_output() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "own_processes::fails"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{said}");
    for part in [
        "own_processes::fails failed in its own process",
        "printed before",
        "boom 7",
        "1 failed",
    ] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
}
