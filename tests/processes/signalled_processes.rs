//! A process that is stopped and continued, or whose waits are interrupted by signals all the time.
#![cfg(unix)]

use crate::program;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Longer than the limit of the calls that are under way.
const STOPPED: Duration = Duration::from_millis(2500);

/// The program, once it is in the middle of what it does.
fn start(how: &str, what: &str) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_signalled"))
        .args([how, what])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n", "{how}, {what}");
    child
}

fn signal(name: &str, child: &Child) {
    let arguments = [format!("-{name}"), child.id().to_string()];
    let sent = Command::new("kill").args(arguments).status();
    assert!(sent.expect("`kill`").success());
}

/// It ends by itself, and nothing went wrong.
#[track_caller]
fn ends_well(child: Child, what: &str) {
    let (status, said) = program::end(child, what);
    assert!(status.success(), "{what}: {status}, {said}");
}

/// Guards against calls that end twice, or never, when the limit passes while nobody can look.
#[test]
fn a_call_in_a_process_that_is_stopped_for_longer_than_its_limit_ends_once() {
    thread::scope(|scope| {
        for case in [
            "sync-worker",
            "sync-inline",
            "async-inline",
            "async-worker",
            "async-task",
            "answered",
        ] {
            scope.spawn(move || {
                let mut child = start("stopped", case);
                signal("STOP", &child);
                thread::sleep(STOPPED);
                signal("CONT", &child);
                let mut stdin = child.stdin.take().expect("it is piped");
                // One that waits for no word may be gone.
                stdin.write_all(b"go on\n").ok();
                ends_well(child, case);
            });
        }
    });
}

/// Guards against a wait that takes an interruption for its end.
#[test]
fn no_call_ends_early_in_a_shower_of_signals() {
    let child = start("showered", "300");
    let mut shower = Command::new("sh")
        .args(["-c", "while kill -USR1 \"$0\"; do :; done"])
        .arg(child.id().to_string())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let ended = std::panic::catch_unwind(|| ends_well(child, "showered"));
    shower.kill().ok();
    shower.wait().ok();
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}
