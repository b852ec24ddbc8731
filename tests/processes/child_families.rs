//! Feature `process` on every platform: pipes, and the end of all processes of a child.

use crate::concurrent::must_return;
use std::io::Read;
use std::process::{Command, Stdio};

use timeout_runtime::CancelToken;
use timeout_runtime::integrations::process::{Error, Process};

fn family(kind: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_family"));
    command.arg(kind);
    command
}

#[test]
fn a_megabyte_through_each_pipe_is_complete() {
    let input: Vec<u8> = (0..=250).cycle().take(1 << 20).collect();
    let sent = input.clone();
    let output = must_return(|| {
        let mut command = family("echo");
        let process = Process::new(&mut command, &CancelToken::new());
        process.input(sent).output()
    });
    let output = output.expect("the child exits by itself");
    assert_eq!(output.status.code(), Some(7));
    assert!(output.stdout == input && output.stderr == input);
}

// Fails if only the child is killed: the other process holds both pipes then.
#[test]
fn a_cancellation_ends_the_processes_that_the_child_has_started() {
    let token = CancelToken::new();
    let mut command = family("parent");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Process::new(&mut command, &token).spawn().unwrap();
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut stderr = child.stderr.take().expect("a pipe");
    stdout.read_exact(&mut [0; 5]).expect("a line");

    child.stdout = Some(stdout);
    token.cancel();
    let output = must_return(|| child.wait_with_output());
    assert!(matches!(output, Err(Error::Stopped { .. })), "{output:?}");
    let mut rest = Vec::new();
    must_return(move || stderr.read_to_end(&mut rest)).expect("the end of the pipe");
}

// Fails if the processes are killed only by a thread that waits for the child.
#[test]
fn a_dropped_child_takes_its_processes_with_it() {
    let mut command = family("parent");
    command.stdout(Stdio::piped());
    let mut child = Process::new(&mut command, &CancelToken::new())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0; 5]).expect("a line");
    drop(child);
    let mut rest = Vec::new();
    must_return(move || stdout.read_to_end(&mut rest)).expect("the end of the pipe");
}
