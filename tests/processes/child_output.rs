//! Feature `process`: the output, the status and the errors of child processes.
#![cfg(unix)]

use crate::children::{self, sh, stopped};
use crate::concurrent::must_return;
use std::error::Error as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use timeout_runtime::integrations::process::{Error, Process};
use timeout_runtime::{CancelToken, TimeoutError};

const MEGABYTE: usize = 1 << 20;

#[test]
fn output_has_the_status_stdout_and_stderr() {
    let mut command = sh("echo out; echo err >&2; exit 7");
    let output = Process::new(&mut command, &CancelToken::new()).output();
    let output = output.expect("the shell exits by itself");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
}

// Fails if the input is written before the output is read, or one pipe is read before the other.
#[test]
fn a_megabyte_through_each_pipe_does_not_block() {
    let input: Vec<u8> = (0..=250).cycle().take(MEGABYTE).collect();
    let sent = input.clone();
    let output = must_return(move || {
        Process::new(&mut sh("tee /dev/stderr"), &CancelToken::new())
            .input(sent)
            .output()
    });
    let output = output.expect("the shell exits by itself");
    assert!(output.status.success());
    assert!(output.stdout == input && output.stderr == input);
}

// Fails if a closed pipe is an error, or if all input must be written before the end.
#[test]
fn input_that_the_child_does_not_read_is_no_error() {
    for (script, printed) in [
        ("true", ""),
        ("exec <&-; echo closed", "closed\n"),
        // Another process holds the pipe and does not read it.
        ("exec 3<&0; sleep 600 <&3 >/dev/null 2>&1 & echo $!", ""),
    ] {
        let output = must_return(move || {
            Process::new(&mut sh(script), &CancelToken::new())
                .input(vec![0; MEGABYTE])
                .output()
        });
        let output = output.expect(script);
        assert!(output.status.success(), "{script}");
        if script.contains("sleep") {
            children::kill(children::ids(&output.stdout)[0]);
        } else {
            assert_eq!(output.stdout, printed.as_bytes(), "{script}");
        }
    }
}

#[test]
fn without_input_the_child_has_the_stdin_of_the_command() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stdin-of-a-child");
    fs::write(&path, "from a file").unwrap();
    let mut command = Command::new("cat");
    command.stdin(File::open(&path).unwrap());
    let output = Process::new(&mut command, &CancelToken::new()).output();
    assert_eq!(output.unwrap().stdout, b"from a file");

    // A pipe of the command is closed, as by the standard library.
    command.stdin(Stdio::piped());
    let output = must_return(move || Process::new(&mut command, &CancelToken::new()).output());
    assert_eq!(output.unwrap().stdout, b"");
}

#[test]
fn wait_writes_the_input_and_returns_the_status_each_time() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stdout-of-a-child");
    let mut command = sh("cat; exit 7");
    command.stdout(File::create(&path).unwrap());
    let mut child = Process::new(&mut command, &CancelToken::new())
        .input(vec![b'a'; MEGABYTE])
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert!(fs::read(&path).unwrap() == vec![b'a'; MEGABYTE]);
}

#[test]
fn a_child_that_a_signal_of_another_process_ends_has_a_status() {
    let token = CancelToken::new();
    let status = Process::new(&mut sh("kill -9 $$"), &token).status();
    assert_eq!(status.unwrap().signal(), Some(9));
}

#[test]
fn the_command_can_be_run_again() {
    let (mut command, token) = (sh("echo again"), CancelToken::new());
    for _ in 0..2 {
        let output = Process::new(&mut command, &token).output().unwrap();
        assert_eq!(output.stdout, b"again\n");
    }
}

// Fails if the token is checked after the start.
#[test]
fn with_a_cancelled_token_no_program_is_started() {
    let token = CancelToken::new();
    token.cancel();
    let mut missing = Command::new("/no/such/program");
    let output = Process::new(&mut missing, &token).output();
    assert_eq!(stopped(output), (Vec::new(), Vec::new()));
}

#[test]
fn a_program_that_cannot_be_started_is_an_io_error() {
    let mut missing = Command::new("/no/such/program");
    let error = Process::new(&mut missing, &CancelToken::new())
        .output()
        .unwrap_err();
    assert!(matches!(&error, Error::Io(error) if error.kind() == ErrorKind::NotFound));
    assert_eq!(io::Error::from(error).kind(), ErrorKind::NotFound);
}

#[test]
fn an_error_of_a_stopped_child_has_its_cause_and_converts_into_that_of_the_token() {
    let token = CancelToken::new();
    token.cancel_with("shutdown");
    let expected = token.check().unwrap_err();
    let error = Error::Stopped {
        error: expected.clone(),
        stdout: b"secret".to_vec(),
        stderr: vec![0; 1000],
    };
    assert_eq!(error.to_string(), "the child process was stopped");
    let source = error.source().and_then(|source| source.downcast_ref());
    assert_eq!(source, Some(&expected));
    // The events of a call print its error.
    let printed = format!("{error:?}");
    assert!(
        printed.contains("6 bytes") && printed.contains("1000 bytes"),
        "{printed}"
    );
    assert!(printed.len() < 500, "{printed}");

    let error = io::Error::from(error);
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    assert_eq!(inner, Some(&expected));
    assert!(matches!(
        Error::from(expected.clone()),
        Error::Stopped { error, .. } if error == expected
    ));
    let _: fn(TimeoutError) -> Error = Error::from;
}
