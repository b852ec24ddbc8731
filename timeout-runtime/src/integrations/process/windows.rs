//! Processes on Windows: a job.

use std::io;
use std::mem;
use std::os::windows::process::CommandExt;
use std::process::{Command, ExitStatus};

use process_wrap::std::{ChildWrapper, CommandWrap, JobObject};

use super::ChildPipes;
pub(super) use super::reader_threads::Pipes;

/// A child and its job.
pub(super) struct Processes(Box<dyn ChildWrapper>);

impl Processes {
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut wrapped = CommandWrap::from(mem::replace(command, Command::new("")));
        let spawned = wrapped.wrap(JobObject).spawn();
        *command = wrapped.into_command();
        // A child of a job starts suspended, and `JobObject` leaves that flag set.
        command.creation_flags(0);
        spawned.map(Self)
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn take_pipes(&mut self) -> ChildPipes {
        (
            self.0.stdin().take(),
            self.0.stdout().take(),
            self.0.stderr().take(),
        )
    }

    /// Asks the processes to end. Returns whether the system can do that.
    #[allow(clippy::unused_self)] // As on Unix.
    pub(super) fn terminate(&mut self) -> bool {
        false
    }

    pub(super) fn kill(&mut self) {
        // An error means that no process is left.
        self.0.start_kill().ok();
    }

    /// Returns the status of the child, also while other processes of the job run.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}
