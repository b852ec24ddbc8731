use timeout_driver_examples::child::shell;
use timeout_driver_examples::servers::processes;

use crate::support::{LONG, ends_at_a_cancellation, ends_at_its_limit, leaves_nothing_running};

// The shell waits for a process of its own, and has started another one.

#[test]
fn all_processes_of_a_child_end_at_the_limit() {
    ends_at_its_limit(
        |limit| shell("sleep 86401 & sleep 86401; true".to_owned(), limit),
        || processes::with("86401"),
    );
    leaves_nothing_running("shell");
}

#[test]
fn all_processes_of_a_child_end_at_a_cancellation() {
    ends_at_a_cancellation(
        |limit| shell("sleep 86402 & sleep 86402; true".to_owned(), limit),
        || processes::with("86402"),
    );
}

#[test]
fn a_child_that_ends_by_itself_has_its_output() {
    assert_eq!(
        shell("echo done".to_owned(), LONG).unwrap().stdout,
        b"done\n"
    );
}
