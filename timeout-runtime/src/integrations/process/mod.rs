//! Child processes that end with a [`CancelToken`]: at the cancellation, a child and the processes
//! that it has started are killed.
//!
//! [`Process`] runs a [`std::process::Command`]. Its methods are those of the command: [`output`],
//! [`status`] and [`spawn`]. It is also the way to bound work that cannot be interrupted inside a
//! process, such as name resolution, reads from a network file system, or foreign code: run that
//! work in a child.
//!
//! ```
//! use std::process::{Command, Output};
//! use timeout_runtime::integrations::process::{Error, Process};
//! use timeout_runtime::timeout;
//!
//! #[timeout(name = "shell", ms = ms)]
//! fn shell(script: &'static str, ms: u64) -> Result<Output, Error> {
//!     Process::new(Command::new("sh").args(["-c", script]), &cancel_token).output()
//! }
//!
//! # #[cfg(unix)] {
//! assert_eq!(shell("echo done", 60_000)?.stdout, b"done\n");
//! let error = shell("sleep 600 & sleep 600; true", 50).unwrap_err();
//! assert!(matches!(error, Error::Stopped { error, .. } if error.is_timed_out()));
//! # }
//! # Ok::<(), Error>(())
//! ```
//!
//! # Which processes are killed
//!
//! On Unix, the child is the leader of a process group of its own, and the whole group is killed.
//! The programs of a pipeline in a shell are in that group. A process that moves to another group
//! or session, as a daemon does, is not killed, and no method here waits for it. Since the group is
//! not the one of the terminal, Ctrl-C does not reach the child, and a child that reads from the
//! terminal is stopped by the system: give it another stdin.
//!
//! On Windows, the child is in a job of its own, and all processes of the job are killed. The
//! creation flags of the command are not used.
//!
//! A child is always reaped, so no zombie is left. Once its status was returned, processes that it
//! has left behind are not killed. Until then, a cancellation kills the rest of the group.
//!
//! # Deadline
//!
//! A child does not learn the deadline by itself. If it can use it, pass it in a variable that it
//! reads: `command.env("MY_DEADLINE", cancel_token.deadline().to_env())`. The child reads it with
//! [`Deadline::from_env`](crate::Deadline::from_env).
//!
//! # Async code
//!
//! These methods block. Call them on a worker (`run = "worker"`), or inside `spawn_blocking` with
//! the context of the call. With `tokio::process`, a future that is dropped at the deadline kills
//! its child if the command has `kill_on_drop(true)`. That kills the child alone, and not the
//! processes that it has started.
//!
//! [`output`]: Process::output
//! [`status`]: Process::status
//! [`spawn`]: Process::spawn

mod child;
mod group;
#[cfg(any(windows, all(test, not(any(timeout_loom, timeout_shuttle)))))]
mod reader_threads;
#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

#[cfg(not(any(unix, windows)))]
compile_error!("the feature `process` needs a system with processes: Unix or Windows");

use std::fmt;
use std::io;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::outcome::TimeoutError;
use crate::token::CancelToken;

use super::waiter::Waiter;
use group::Group;
use system::Processes;

pub use child::Child;

/// The pipes of a child: stdin, stdout and stderr.
type ChildPipes = (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>);

/// Runs a command until it exits or its token is cancelled.
///
/// See [the module](self) for an example, and for which processes are killed.
#[must_use = "it does nothing before `output`, `status` or `spawn`"]
pub struct Process<'a> {
    command: &'a mut Command,
    token: CancelToken,
    grace: Duration,
    input: Option<Vec<u8>>,
}

impl<'a> Process<'a> {
    /// Runs `command` until `token` is cancelled.
    pub fn new(command: &'a mut Command, token: &CancelToken) -> Self {
        Self {
            command,
            token: token.clone(),
            grace: Duration::ZERO,
            input: None,
        }
    }

    /// Gives the processes time to clean up: they get `SIGTERM` at the cancellation, and are killed
    /// when the child has exited, or after `grace`.
    ///
    /// The default is zero: they are killed at the cancellation. On Windows there is no such
    /// signal, and `grace` has no effect.
    ///
    /// A method that waits for the child returns up to `grace` later. An annotated function that
    /// runs inline is late by that time. The caller of one on a worker gets its error at the limit.
    ///
    /// ```
    /// use std::process::Command;
    /// use std::time::Duration;
    /// use timeout_runtime::CancelToken;
    /// use timeout_runtime::integrations::process::Process;
    ///
    /// # #[cfg(unix)] {
    /// let script = "trap 'echo cleaned up; exit 1' TERM; echo ready; while :; do sleep 0.01; done";
    /// let token = CancelToken::new();
    /// let mut command = Command::new("sh");
    /// command.args(["-c", script]).stdout(std::process::Stdio::piped());
    /// let mut child = Process::new(&mut command, &token)
    ///     .grace(Duration::from_secs(60))
    ///     .spawn()?;
    /// # use std::io::BufRead;
    /// # let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    /// # let mut line = String::new();
    /// # stdout.read_line(&mut line)?;
    /// // The child is ready.
    /// token.cancel();
    /// assert!(child.wait().is_err());
    /// # line.clear();
    /// # stdout.read_line(&mut line)?;
    /// # assert_eq!(line, "cleaned up\n");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Gives the child a pipe as stdin, and writes `input` to it while its output is read.
    ///
    /// A child that does not read all of it is no error.
    ///
    /// ```
    /// use std::process::Command;
    /// use timeout_runtime::CancelToken;
    /// use timeout_runtime::integrations::process::Process;
    ///
    /// # #[cfg(unix)] {
    /// let output = Process::new(&mut Command::new("cat"), &CancelToken::new())
    ///     .input("some text")
    ///     .output()?;
    /// assert_eq!(output.stdout, b"some text");
    /// # }
    /// # Ok::<(), timeout_runtime::integrations::process::Error>(())
    /// ```
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Runs the command, and returns its status, stdout and stderr.
    ///
    /// The latter two are pipes, whatever the command says. Without [`input`](Self::input), stdin
    /// is that of the command, which is inherited by default.
    ///
    /// As with [`Command::output`], the output ends when no process holds its pipes any more. The
    /// cancellation also ends it if a process that is not killed holds them.
    ///
    /// # Errors
    ///
    /// - [`Error::Stopped`] with the output so far, if the token is cancelled before the child has
    ///   exited and all output is read. A program is not even started with a cancelled token.
    /// - [`Error::Io`] if the program cannot be started, or a pipe cannot be read.
    pub fn output(self) -> Result<Output, Error> {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.spawn()?.wait_with_output()
    }

    /// Runs the command, and returns its status. The child has the stdin, stdout and stderr of the
    /// command, which are inherited by default.
    ///
    /// ```
    /// use std::process::Command;
    /// use timeout_runtime::CancelToken;
    /// use timeout_runtime::integrations::process::Process;
    ///
    /// # #[cfg(unix)] {
    /// let status = Process::new(&mut Command::new("true"), &CancelToken::new()).status()?;
    /// assert!(status.success());
    /// # }
    /// # Ok::<(), timeout_runtime::integrations::process::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    pub fn status(self) -> Result<ExitStatus, Error> {
        self.spawn()?.wait()
    }

    /// Starts the command, whose processes are killed when the token is cancelled, also while no
    /// thread waits for the [`Child`].
    ///
    /// # Errors
    ///
    /// - [`Error::Stopped`] if the token is cancelled already. The program is not started.
    /// - [`Error::Io`] if the program cannot be started.
    pub fn spawn(self) -> Result<Child, Error> {
        self.token.check()?;
        if self.input.is_some() {
            self.command.stdin(Stdio::piped());
        }
        let mut processes = Processes::spawn(self.command)?;
        let (stdin, stdout, stderr) = processes.take_pipes();
        let id = processes.id();
        let group = Group::new(processes, self.grace);
        let waker = Waker::from(Arc::clone(&group));
        let waiter = Waiter::new(&self.token, waker.clone());
        if waiter.is_none() {
            waker.wake();
        }
        Ok(Child {
            stdin,
            stdout,
            stderr,
            id,
            input: self.input,
            status: None,
            token: self.token,
            group,
            waiter,
        })
    }
}

impl fmt::Debug for Process<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("command", &self.command)
            .field("token", &self.token)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

/// Why a child process has no result.
///
/// It converts from [`TimeoutError`], so an annotated function can return it, and into
/// [`io::Error`]. As an `io::Error`, [`Stopped`](Self::Stopped) is what the [`TimeoutError`]
/// converts into; the output is dropped.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The token was cancelled, and the processes were killed or have not started.
    ///
    /// The caller of an annotated function gets the error of its call at the limit, without output.
    /// The operation itself gets the output.
    #[error("the child process was stopped")]
    Stopped {
        /// The error of the token.
        #[source]
        error: TimeoutError,
        /// What was read from the child's stdout until then.
        stdout: Vec<u8>,
        /// What was read from the child's stderr until then.
        stderr: Vec<u8>,
    },
    /// The program could not be started, or waiting for the child or its output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<TimeoutError> for Error {
    fn from(error: TimeoutError) -> Self {
        Self::Stopped {
            error,
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Stopped { error, .. } => error.into(),
            Error::Io(error) => error,
        }
    }
}

/// Prints the length of the output instead of its bytes: the events of a call print its error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped {
                error,
                stdout,
                stderr,
            } => f
                .debug_struct("Stopped")
                .field("error", error)
                .field("stdout", &format_args!("{} bytes", stdout.len()))
                .field("stderr", &format_args!("{} bytes", stderr.len()))
                .finish(),
            Self::Io(error) => f.debug_tuple("Io").field(error).finish(),
        }
    }
}
