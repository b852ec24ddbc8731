//! Processes and pipes on Unix: a process group, and pipes that never block.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, Signal, kill_process_group};

use super::ChildPipes;

/// The most that is read from a pipe between two checks of the token.
const MOST: u64 = 1 << 20;

/// A child and its group. The child is the leader of the group, so both have the same number.
pub(super) struct Processes(Child);

impl Processes {
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        command.process_group(0).spawn().map(Self)
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn take_pipes(&mut self) -> ChildPipes {
        (
            self.0.stdin.take(),
            self.0.stdout.take(),
            self.0.stderr.take(),
        )
    }

    /// Asks the processes to end. Returns whether the system can do that.
    pub(super) fn terminate(&mut self) -> bool {
        self.signal(Signal::TERM);
        true
    }

    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // An error means that there is no process left, or none that this one may signal.
        kill_process_group(Pid::from_child(&self.0), signal).ok();
    }

    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

/// The pipes of a child.
pub(super) struct Pipes {
    stdin: Option<ChildStdin>,
    input: Vec<u8>,
    written: usize,
    stdout: Source<ChildStdout>,
    stderr: Source<ChildStderr>,
}

/// A pipe that is read, and what was read from it. There is no pipe after its end.
struct Source<R> {
    pipe: Option<R>,
    bytes: Vec<u8>,
}

impl Pipes {
    pub(super) fn new(
        input: Option<(ChildStdin, Vec<u8>)>,
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
    ) -> io::Result<Self> {
        let (stdin, input) = input.unzip();
        if let Some(stdin) = &stdin {
            ioctl_fionbio(stdin, true)?;
        }
        if let Some(stdout) = &stdout {
            ioctl_fionbio(stdout, true)?;
        }
        if let Some(stderr) = &stderr {
            ioctl_fionbio(stderr, true)?;
        }
        Ok(Self {
            stdin,
            input: input.unwrap_or_default(),
            written: 0,
            stdout: Source::new(stdout),
            stderr: Source::new(stderr),
        })
    }

    /// Whether all output was read.
    pub(super) fn are_at_end(&self) -> bool {
        self.stdout.pipe.is_none() && self.stderr.pipe.is_none()
    }

    /// Waits until a pipe is ready, for `longest` at most, and reads and writes what it can.
    /// Returns `false` immediately if no pipe is left.
    pub(super) fn transfer(&mut self, longest: Duration) -> io::Result<bool> {
        let mut pipes = Vec::with_capacity(3);
        if let Some(stdin) = &self.stdin {
            pipes.push(PollFd::new(stdin, PollFlags::OUT));
        }
        if let Some(stdout) = &self.stdout.pipe {
            pipes.push(PollFd::new(stdout, PollFlags::IN));
        }
        if let Some(stderr) = &self.stderr.pipe {
            pipes.push(PollFd::new(stderr, PollFlags::IN));
        }
        if pipes.is_empty() {
            return Ok(false);
        }
        let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
        match poll(&mut pipes, Some(&longest)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.write()?;
        self.stdout.read()?;
        self.stderr.read()?;
        Ok(true)
    }

    /// Writes what fits into the pipe, and closes it after the last byte.
    fn write(&mut self) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Ok(());
        };
        let rest = &self.input[self.written..];
        match stdin.write(rest) {
            Ok(count) if count < rest.len() => self.written += count,
            Ok(_) => self.stdin = None,
            // The child reads no more of its input.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.stdin = None,
            Err(error) if is_temporary(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes what was read from stdout and from stderr.
    pub(super) fn take_bytes(&mut self) -> (Vec<u8>, Vec<u8>) {
        let Self { stdout, stderr, .. } = self;
        (
            std::mem::take(&mut stdout.bytes),
            std::mem::take(&mut stderr.bytes),
        )
    }
}

impl<R: Read> Source<R> {
    fn new(pipe: Option<R>) -> Self {
        Self {
            pipe,
            bytes: Vec::new(),
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        match pipe.take(MOST).read_to_end(&mut self.bytes) {
            Ok(count) if count as u64 == MOST => {}
            Ok(_) => self.pipe = None,
            // The bytes before the error were added.
            Err(error) if is_temporary(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
