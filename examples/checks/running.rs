//! Runs built examples, and collects their output.

use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use timeout_runtime::timeout;

/// Returns the command that runs an example in `dir`.
pub(crate) fn example(name: &str, dir: &Path) -> Command {
    let mut path = std::env::current_exe().expect("the test has a path");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.extend(["examples", name]);
    path.set_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.exists(), "{} is not built", path.display());
    let mut command = Command::new(path);
    command.current_dir(dir).stdin(Stdio::null());
    command
}

/// Runs a command, with a limit far above its usual duration.
#[timeout(name = "example", secs = 60)]
fn output(mut command: Command) -> io::Result<Output> {
    command.output()
}

/// The output of a command, and its exit code.
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

pub(crate) fn run(command: Command) -> Printed {
    let output = output(command).expect("the example runs");
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).expect("examples print UTF-8");
        text.replace("\r\n", "\n")
    };
    Printed {
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        code: output.status.code(),
    }
}

/// Runs an example, and asserts that it prints nothing to stderr.
pub(crate) fn run_plain(name: &str) -> Printed {
    let printed = run(example(name, Path::new(".")));
    assert_eq!(printed.stderr, "", "of {name}");
    printed
}

/// Asserts the start and the end of a printed event.
///
/// Ignores the time between the two, and the number of the worker.
#[track_caller]
pub(crate) fn assert_event(event: Option<&str>, start: &str, end: &str) {
    let event = event.expect("an event is printed");
    let event = event.trim_end_matches(|last: char| last.is_ascii_digit());
    assert!(
        event.starts_with(start) && event.ends_with(end),
        "{event:?} is not {start:?} .. {end:?}"
    );
}
