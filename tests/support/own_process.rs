//! Runs a test in a process of its own.
//!
//! Settings, counts of threads and memory, panic hooks and registered functions hold for a whole
//! process. A test that changes or measures them runs in a process without other tests.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::any::type_name;
use std::env;
use std::process::Command;

/// The environment variable with the name of the test for which a process was started.
const TEST: &str = "TIMEOUT_TEST_IN_OWN_PROCESS";

/// Runs `test` in a new process. Panics with the output of that process if `test` panics.
///
/// `test` is a closure of the calling test. The new process is this test program, with the name of
/// the calling test as its argument.
#[track_caller]
pub fn in_own_process<F: FnOnce()>(test: F) {
    in_own_process_with(&[], test);
}

/// As [`in_own_process`], with additional environment variables. Returns what the process has
/// printed to standard error.
#[track_caller]
pub fn in_own_process_with<F: FnOnce()>(variables: &[(&str, &str)], test: F) -> String {
    let name = name_of::<F>();
    if env::var(TEST).is_ok_and(|started_for| started_for == name) {
        test();
        return String::new();
    }
    let program = env::current_exe().expect("this program has a path");
    let output = Command::new(program)
        .args([name, "--exact", "--include-ignored", "--show-output"])
        .env(TEST, name)
        .envs(variables.iter().copied())
        .output()
        .expect("this program can be started again");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    // Without this check, a wrong name would run no test and succeed.
    let has_passed = output.status.success() && stdout.contains("1 passed");
    assert!(
        has_passed,
        "{name} failed in its own process, {}:\n{stdout}{stderr}",
        output.status
    );
    print!("{stdout}{stderr}");
    stderr.into_owned()
}

/// The name of the test that contains the closure. The type of a closure is printed as the path of
/// its function, after the name of the crate.
fn name_of<F>() -> &'static str {
    let path = type_name::<F>();
    let (test, _) = path.rsplit_once("::{").unwrap_or((path, ""));
    test.split_once("::").map_or(test, |(_, name)| name)
}
