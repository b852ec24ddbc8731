//! Runs a program that must end.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::support::SOON;

/// Runs `command` to its end. Returns its status and its standard error; its standard output is not
/// read.
#[track_caller]
pub fn run(command: &mut Command) -> (ExitStatus, String) {
    let child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built");
    end(child, &format!("{command:?}"))
}

/// Waits for the end of `child`, called `what` in messages. Returns its status and its standard
/// error, which must be a pipe.
#[track_caller]
pub fn end(mut child: Child, what: &str) -> (ExitStatus, String) {
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            break status;
        }
        if start.elapsed() >= SOON {
            child.kill().ok();
            child.wait().ok();
            panic!("{what} never ended");
        }
        thread::sleep(Duration::from_millis(1));
    };
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("stderr is piped");
    stderr.read_to_string(&mut said).expect("text");
    (status, said)
}
