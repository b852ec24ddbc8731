//! Child processes of a test, and what the system knows about them.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use timeout_runtime::CancelToken;
use timeout_runtime::integrations::process::Error;

use super::support::eventually;

/// A shell that runs `script`.
pub fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// The state of a process as one letter, or `None` if the system has no such process. `Z` is a
/// zombie: it has ended, and its parent has not waited for it.
pub fn state(id: u32) -> Option<char> {
    if Path::new("/proc/self/stat").exists() {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        return stat.rsplit_once(") ")?.1.chars().next();
    }
    let mut ps = Command::new("ps");
    ps.args(["-o", "stat=", "-p", &id.to_string()]);
    let printed = ps.output().expect("`ps`").stdout;
    String::from_utf8_lossy(&printed).trim().chars().next()
}

/// Whether a process runs. One that is not our child can stay a zombie after its end.
pub fn is_running(id: u32) -> bool {
    state(id).is_some_and(|state| state != 'Z' && state != 'X')
}

/// The children of this process, zombies included, where the system lists them.
pub fn children() -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ids = processes.filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent(*id) == Some(process::id()))
        .collect()
}

fn parent(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

/// Ends a process that a test has left running.
pub fn kill(id: u32) {
    let killed = Command::new("kill").args(["-9", &id.to_string()]).status();
    assert!(killed.expect("`kill`").success());
}

/// The numbers in a text.
pub fn ids(text: &[u8]) -> Vec<u32> {
    let text = String::from_utf8_lossy(text);
    let numbers = text.split_whitespace().map(str::parse);
    numbers.map(|id| id.expect("a number")).collect()
}

/// A file that a child creates.
pub struct Signal(PathBuf);

impl Signal {
    /// Tells `command` the path of the file in the variable `variable`.
    pub fn new(command: &mut Command, variable: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}-{variable}", process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::remove_file(&path).ok();
        command.env(variable, &path);
        Self(path)
    }

    pub fn wait(&self) {
        eventually("the child creates its file", || self.0.exists());
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

/// Calls `run` with a shell that runs `script` and a token. Cancels the token when the script has
/// created the file `$READY`.
pub fn cancelled_when_ready<T>(
    script: &str,
    run: impl FnOnce(&mut Command, &CancelToken) -> T,
) -> T {
    let mut command = sh(script);
    let ready = Signal::new(&mut command, "READY");
    let token = CancelToken::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            ready.wait();
            token.cancel();
        });
        run(&mut command, &token)
    })
}

/// What a stopped child has written to stdout and stderr. Panics if it was not stopped by a
/// cancellation.
#[track_caller]
pub fn stopped<T>(result: Result<T, Error>) -> (Vec<u8>, Vec<u8>) {
    match result.map(drop) {
        Err(Error::Stopped {
            error,
            stdout,
            stderr,
        }) => {
            assert!(error.is_cancelled(), "{error:?}");
            (stdout, stderr)
        }
        other => panic!("{other:?}"),
    }
}
