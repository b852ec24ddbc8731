//! A process that is stopped and continued, or whose waits are interrupted by signals.
#![cfg(unix)]

use crate::program;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Longer than the limit of the calls in progress.
const STOPPED: Duration = Duration::from_millis(2500);

/// Starts the program and waits until its calls are in progress.
fn start(how: &str, what: &str) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_signalled"))
        .args([how, what])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n", "{how}, {what}");
    child
}

fn signal(name: &str, child: &Child) {
    let arguments = [format!("-{name}"), child.id().to_string()];
    let sent = Command::new("kill").args(arguments).status();
    assert!(sent.expect("`kill`").success());
}

/// Asserts that the program exits successfully.
#[track_caller]
fn assert_success(child: Child, what: &str) {
    let (status, said) = program::end(child, what);
    assert!(status.success(), "{what}: {status}, {said}");
}

/// A call whose limit passed while the process was stopped used to end twice, or never.
// Fails if a published result loses to the caller because the deadline has passed meanwhile.
#[test]
fn a_call_whose_process_is_stopped_past_its_limit_has_one_outcome() {
    thread::scope(|scope| {
        for case in [
            "sync-worker",
            "sync-inline",
            "async-inline",
            "async-worker",
            "async-task",
            "ended",
        ] {
            scope.spawn(move || {
                let mut child = start("stopped", case);
                signal("STOP", &child);
                thread::sleep(STOPPED);
                signal("CONT", &child);
                let mut stdin = child.stdin.take().expect("a pipe");
                // A program that reads no input may have exited.
                stdin.write_all(b"go on\n").ok();
                assert_success(child, case);
            });
        }
    });
}

/// An interrupted wait must not be taken for a finished one.
// Fails if a wait ends after one wake-up, or sleeps for a microsecond and does not park.
#[test]
fn no_call_ends_early_under_repeated_signals() {
    let child = start("showered", "300");
    let mut shower = Command::new("sh")
        .args(["-c", "while kill -USR1 \"$0\"; do :; done"])
        .arg(child.id().to_string())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let ended = std::panic::catch_unwind(|| assert_success(child, "showered"));
    shower.kill().ok();
    shower.wait().ok();
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}
