//! Pipes where no wait ends when one of several pipes is ready: a thread for each pipe.
//!
//! A thread whose pipe never ends, because another process holds it, blocks until that process
//! ends. No call waits for such a thread.

use std::io::{self, Read, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::sync::lock;
use crate::threads;

/// The size of one read.
const CHUNK: usize = 1 << 16;

/// The pipes of a child.
pub(super) struct Pipes(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    has_ended: Condvar,
}

#[derive(Default)]
struct State {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// The number of pipes that are read.
    open: usize,
    /// Why a pipe was not read to its end.
    error: Option<io::Error>,
}

impl Pipes {
    pub(super) fn new(
        input: Option<(impl Write + Send + 'static, Vec<u8>)>,
        stdout: Option<impl Read + Send + 'static>,
        stderr: Option<impl Read + Send + 'static>,
    ) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        if let Some(stdout) = stdout {
            read(&shared, stdout, |state| &mut state.stdout)?;
        }
        if let Some(stderr) = stderr {
            read(&shared, stderr, |state| &mut state.stderr)?;
        }
        if let Some((mut stdin, input)) = input {
            // An error means that the child reads no more of its input.
            start(move || drop(stdin.write_all(&input)))?;
        }
        Ok(Self(shared))
    }

    /// Whether all output was read.
    pub(super) fn are_at_end(&self) -> bool {
        let state = lock(&self.0.state);
        state.open == 0 && state.error.is_none()
    }

    /// Waits until all output was read, for `longest` at most. Returns `false` immediately if that
    /// is so already.
    pub(super) fn transfer(&mut self, longest: Duration) -> io::Result<bool> {
        let mut state = lock(&self.0.state);
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        if state.open == 0 {
            return Ok(false);
        }
        let waited = self.0.has_ended.wait_timeout(state, longest);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        Ok(true)
    }

    /// Takes what was read from stdout and from stderr.
    pub(super) fn take_bytes(&mut self) -> (Vec<u8>, Vec<u8>) {
        let state = &mut *lock(&self.0.state);
        (mem::take(&mut state.stdout), mem::take(&mut state.stderr))
    }
}

/// Starts a thread that reads `pipe` to its end.
fn read(
    shared: &Arc<Shared>,
    mut pipe: impl Read + Send + 'static,
    bytes: fn(&mut State) -> &mut Vec<u8>,
) -> io::Result<()> {
    let reader = Arc::clone(shared);
    lock(&shared.state).open += 1;
    start(move || {
        let mut chunk = vec![0; CHUNK];
        let error = loop {
            match pipe.read(&mut chunk) {
                Ok(0) => break None,
                Ok(count) => bytes(&mut lock(&reader.state)).extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
        };
        let mut state = lock(&reader.state);
        state.open -= 1;
        state.error = state.error.take().or(error);
        reader.has_ended.notify_one();
    })
}

fn start(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    threads::start("timeout-pipe".to_owned(), None, run)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A pipe that ends when its sender is dropped.
    struct Channel(Receiver<u8>);

    impl Read for Channel {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let byte = self.0.recv().ok();
            Ok(byte.map_or(0, |byte| {
                buffer[0] = byte;
                1
            }))
        }
    }

    struct Sink(Sender<Vec<u8>>);

    impl Write for Sink {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            self.0.send(buffer.to_vec()).map_err(io::Error::other)?;
            Ok(buffer.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn all_pipes_are_transferred_concurrently() {
        let (sink, written) = channel();
        let megabyte = vec![7; 1 << 20];
        let stdout = Cursor::new(megabyte.clone());
        let stderr = Cursor::new(b"error".to_vec());
        let input = (Sink(sink), b"input".to_vec());
        let mut pipes = Pipes::new(Some(input), Some(stdout), Some(stderr)).unwrap();
        while !pipes.are_at_end() {
            pipes.transfer(LONG).unwrap();
        }
        assert_eq!(pipes.take_bytes(), (megabyte, b"error".to_vec()));
        assert_eq!(written.recv(), Ok(b"input".to_vec()));
        assert!(written.recv().is_err(), "the input is closed");
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("broken"))
        }
    }

    #[test]
    fn a_pipe_that_breaks_is_not_at_its_end() {
        let no_input = None::<(Sink, Vec<u8>)>;
        let ended = Cursor::new(b"a".to_vec());
        let mut pipes = Pipes::new(no_input, Some(Broken), Some(ended)).unwrap();
        let error = loop {
            assert!(!pipes.are_at_end());
            if let Err(error) = pipes.transfer(Duration::from_millis(1)) {
                break error;
            }
        };
        assert_eq!(error.to_string(), "broken");
    }

    #[test]
    fn a_pipe_that_does_not_end_is_left_with_the_bytes_so_far() {
        let (sender, stuck) = channel();
        sender.send(b'a').unwrap();
        let no_input = None::<(Sink, Vec<u8>)>;
        let ended = Cursor::new(b"b".to_vec());
        let mut pipes = Pipes::new(no_input, Some(Channel(stuck)), Some(ended)).unwrap();
        let mut stdout = Vec::new();
        while stdout.is_empty() {
            assert!(pipes.transfer(Duration::from_millis(1)).unwrap());
            stdout = pipes.take_bytes().0;
        }
        assert_eq!(stdout, b"a");
        assert!(!pipes.are_at_end());
        drop(sender);
        while !pipes.are_at_end() {
            pipes.transfer(LONG).unwrap();
        }
        assert!(!pipes.transfer(LONG).unwrap(), "no wait without a pipe");
    }
}
