//! [`Child`]: a child process, and the thread that waits for it.

use std::fmt;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus, Output};
use std::sync::Arc;
use std::task::Wake;
use std::thread;
use std::time::Duration;

use crate::outcome::TimeoutError;
use crate::time::Clock;
use crate::token::CancelToken;

use super::super::waiter::Waiter;
use super::Error;
use super::group::{Group, Phase};
use super::system::Pipes;

/// The first pause of a thread that waits for the child. Each further pause is twice as long.
const FIRST_STEP: Duration = Duration::from_micros(50);

/// The longest pause.
const LONGEST_STEP: Duration = Duration::from_millis(10);

/// How long a caller waits for a killed child to be reaped. A process takes longer if it hangs
/// inside the system, or if it has to wait for a core. The timer reaps it when it is gone.
const LONGEST_REAPING: Duration = Duration::from_millis(100);

/// A running child process. Created by [`Process::spawn`](super::Process::spawn).
///
/// At the cancellation, the processes are killed even if no method is called, after the
/// [grace](super::Process::grace). So a blocked read from [`stdout`](Self::stdout) ends then. What
/// it has returned can be truncated: [`wait`](Self::wait) returns an error in that case.
///
/// Dropping a child whose status was not returned kills the processes in the same way, and does not
/// wait for that.
///
/// ```
/// use std::io::{BufRead, BufReader};
/// use std::process::{Command, Stdio};
/// use timeout_runtime::CancelToken;
/// use timeout_runtime::integrations::process::Process;
///
/// # #[cfg(unix)] {
/// let token = CancelToken::new();
/// let mut command = Command::new("sh");
/// command.args(["-c", "echo first; echo second"]).stdout(Stdio::piped());
/// let mut child = Process::new(&mut command, &token).spawn()?;
/// let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
/// let lines = stdout.lines().collect::<Result<Vec<_>, _>>()?;
/// assert!(child.wait()?.success()); // these are all lines
/// assert_eq!(lines, ["first", "second"]);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping the child kills it"]
pub struct Child {
    /// The pipe to the child's stdin, if the command has one there.
    pub stdin: Option<ChildStdin>,
    /// The pipe from the child's stdout, if the command has one there.
    pub stdout: Option<ChildStdout>,
    /// The pipe from the child's stderr, if the command has one there.
    pub stderr: Option<ChildStderr>,
    pub(super) id: u32,
    pub(super) input: Option<Vec<u8>>,
    pub(super) status: Option<ExitStatus>,
    pub(super) token: CancelToken,
    pub(super) group: Arc<Group>,
    /// `None` if the token was cancelled before.
    pub(super) waiter: Option<Waiter>,
}

impl Child {
    /// The process identifier of the child. On Unix, that is also the number of its process group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Blocks until the child has exited, and returns its status. Writes
    /// [`input`](super::Process::input) first, and closes [`stdin`](Self::stdin). Does not read
    /// output.
    ///
    /// # Errors
    ///
    /// - [`Error::Stopped`] if the token is cancelled before the child has exited. The processes
    ///   are killed then, and the child is reaped. If the system needs longer than 100 ms to end
    ///   it, it is reaped after that.
    /// - [`Error::Io`] if the child cannot be waited for.
    pub fn wait(&mut self) -> Result<ExitStatus, Error> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let input = self.stdin.take().zip(self.input.take());
        self.wait_for(&mut Pipes::new(
            input,
            None::<ChildStdout>,
            None::<ChildStderr>,
        )?)
    }

    /// Blocks until the child has exited and all of its output is read, from each of
    /// [`stdout`](Self::stdout) and [`stderr`](Self::stderr) that is a pipe. Writes
    /// [`input`](super::Process::input) meanwhile.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait). [`Error::Stopped`] has the output so far.
    pub fn wait_with_output(mut self) -> Result<Output, Error> {
        let input = self.stdin.take().zip(self.input.take());
        let mut pipes = Pipes::new(input, self.stdout.take(), self.stderr.take())?;
        let status = self.wait_for(&mut pipes)?;
        let (stdout, stderr) = pipes.take_bytes();
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }

    fn wait_for(&mut self, pipes: &mut Pipes) -> Result<ExitStatus, Error> {
        let checked = self.token.check();
        checked.map_err(|error| self.stop(error, pipes))?;
        // A child that has exited while another process holds a pipe stays a zombie, so that its
        // group can still be killed.
        while !pipes.are_at_end() {
            self.check(pipes)?;
            pipes.transfer(self.token.remaining_or(LONGEST_STEP).min(LONGEST_STEP))?;
        }
        let mut step = FIRST_STEP;
        loop {
            self.check(pipes)?;
            self.status = match self.status {
                None => self.group.exit_status()?,
                known => known,
            };
            if let Some(status) = self.status {
                return Ok(status);
            }
            if !pipes.transfer(step)? {
                // A test clock stands while a child process runs.
                let _ = self.token.wait_on(Clock::Real, step);
            }
            step = (2 * step).min(LONGEST_STEP);
        }
    }

    /// Checks the token again. If it is cancelled, returns once the child is reaped.
    fn check(&self, pipes: &mut Pipes) -> Result<(), Error> {
        self.token.result().map_err(|error| self.stop(error, pipes))
    }

    fn stop(&self, error: TimeoutError, pipes: &mut Pipes) -> Error {
        let mut step = FIRST_STEP;
        loop {
            match self.group.stop() {
                None => break,
                Some(Phase::Killed { at }) if Clock::Real.has_reached(at.plus(LONGEST_REAPING)) => {
                    break;
                }
                Some(_) => {}
            }
            if !matches!(pipes.transfer(step), Ok(true)) {
                thread::sleep(step);
            }
            step = (2 * step).min(LONGEST_STEP);
        }
        // What the pipes hold now. Another process may keep them open.
        pipes.transfer(Duration::ZERO).ok();
        let (stdout, stderr) = pipes.take_bytes();
        Error::Stopped {
            error,
            stdout,
            stderr,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.waiter = None;
        Arc::clone(&self.group).wake();
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("id", &self.id)
            .field("status", &self.status)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
