//! [`CancellableStream`]: reads and writes in steps, and checks the token in between.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use crate::time::Tick;
use crate::token::CancelToken;

use super::check_deadline;
use super::socket::{Direction, Socket};

/// The longest first attempt. Each further attempt may take twice as long, because an idle
/// connection needs no attention.
const FIRST_STEP: Duration = Duration::from_millis(10);

/// The longest attempt, and thus the longest time between two checks of the token.
const LONGEST_STEP: Duration = Duration::from_millis(40);

/// The shortest attempt: the socket refuses a timeout of zero.
const SHORTEST_STEP: Duration = Duration::from_millis(1);

/// The pause after the first attempt on a non-blocking stream. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_micros(50);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// A stream whose reads and writes end when a token is cancelled.
///
/// It holds a [`TcpStream`](std::net::TcpStream), on Unix also a `UnixStream`, or a reference to
/// one. It implements [`Read`] and [`Write`], and so does a reference to it. [`connect`] creates
/// one, and [`new`](Self::new) wraps a stream.
///
/// A wait ends at the token's deadline, some milliseconds late as timeouts of sockets are, and at
/// most about 40 ms after any other cancellation. It then returns the [error of the
/// token](super#errors-of-the-token). Nothing is shut down, see [the connection after a
/// cancellation](super#the-connection-after-a-cancellation). A signal ends no wait.
///
/// A waiting thread wakes up every 40 ms. A thousand of them take about a seventh of a processor
/// core.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::{TcpListener, TcpStream};
/// use timeout_runtime::CancelToken;
/// use timeout_runtime::net::CancellableStream;
///
/// let server = TcpListener::bind("127.0.0.1:0")?;
/// let mut client = TcpStream::connect(server.local_addr()?)?;
/// let (peer, _) = server.accept()?;
///
/// let (idle, next) = (CancelToken::new(), CancelToken::new());
/// let mut peer = CancellableStream::new(peer, &idle);
/// idle.cancel();
/// assert!(peer.read(&mut [0; 8]).is_err());
///
/// // The read has taken nothing, so the connection can be used with the next token.
/// peer.set_token(&next);
/// client.write_all(b"ping")?;
/// let mut message = [0; 4];
/// peer.read_exact(&mut message)?;
/// assert_eq!(&message, b"ping");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Timeouts and modes of the stream
///
/// A timeout that the stream has before its first wait still counts: a read or a write that takes
/// longer returns the error of the stream, as without the token. A non-blocking stream is tried
/// again after pauses that grow to 10 ms, until it is ready.
///
/// Waits change the timeout of the socket, for the direction in which they wait. On Windows they
/// make the socket non-blocking instead. Dropping the last [clone](Self::try_clone), or
/// [`into_inner`](Self::into_inner), sets the timeouts back, and makes the socket blocking on
/// Windows. Until then, other handles of the same socket have the changed timeout.
///
/// # Several threads
///
/// Threads can share one value by reference, or use a [clone](Self::try_clone) each. Values that
/// are made from several clones of a *stream* do not know of each other. Use them for one
/// direction each: one value to read, another one to write.
///
/// [`connect`]: super::connect
pub struct CancellableStream<S: Socket> {
    token: CancelToken,
    /// `None` only after `into_inner`.
    handle: Option<Handle<S>>,
}

struct Handle<S> {
    socket: S,
    timeouts: Arc<Timeouts>,
}

/// The timeouts that the socket had before waits changed them.
#[derive(Default)]
struct Timeouts {
    read: OnceLock<Option<Duration>>,
    write: OnceLock<Option<Duration>>,
}

impl<S: Socket> CancellableStream<S> {
    /// Wraps a connected stream. Its reads and writes end when `token` is cancelled.
    #[must_use]
    pub fn new(stream: S, token: &CancelToken) -> Self {
        Self::with_timeouts(stream, Arc::default(), token)
    }

    fn with_timeouts(socket: S, timeouts: Arc<Timeouts>, token: &CancelToken) -> Self {
        Self {
            token: token.clone(),
            handle: Some(Handle { socket, timeouts }),
        }
    }

    /// Another value for the same connection, with the same token.
    ///
    /// # Errors
    ///
    /// Returns the error of the stream's `try_clone`.
    pub fn try_clone(&self) -> io::Result<Self> {
        let Handle { socket, timeouts } = self.handle();
        let timeouts = Arc::clone(timeouts);
        Ok(Self::with_timeouts(
            socket.duplicate()?,
            timeouts,
            &self.token,
        ))
    }

    /// Replaces the token: later reads and writes end when `token` is cancelled.
    pub fn set_token(&mut self, token: &CancelToken) {
        self.token = token.clone();
    }

    /// Returns the stream, for example to read its address or to shut it down.
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.handle().socket
    }

    /// Returns the stream. Its timeouts are as before, unless clones of this value still exist.
    #[must_use]
    pub fn into_inner(mut self) -> S {
        match self.handle.take() {
            Some(handle) => handle.restore(),
            None => unreachable!("only this function takes the handle"),
        }
    }

    fn handle(&self) -> &Handle<S> {
        match &self.handle {
            Some(handle) => handle,
            None => unreachable!("only `into_inner` takes the handle"),
        }
    }

    /// Calls `attempt` until it has moved bytes, or until the token is cancelled.
    fn transfer(
        &self,
        direction: Direction,
        mut attempt: impl FnMut(&S) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let (token, handle) = (&self.token, self.handle());
        let socket = &handle.socket;
        let own_timeout = handle.timeout(direction)?;
        let own_end = own_timeout.map_or(Tick::NEVER, |timeout| Tick::now().plus(timeout));
        let (mut longest, mut pause) = (FIRST_STEP, FIRST_PAUSE);
        token.check()?;
        loop {
            token.result()?;
            let start = Tick::now();
            let left = token.remaining_or(longest).min(own_end.since(start));
            let step = left.clamp(SHORTEST_STEP, longest);
            socket.limit_attempts(direction, step)?;
            let result = attempt(socket);
            match &result {
                Ok(1..) => return result,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // After the cancellation, neither the end nor an error of the stream counts.
                Ok(0) | Err(_) => {
                    check_deadline(token)?;
                    return result;
                }
            }
            let now = Tick::now();
            if now >= own_end {
                check_deadline(token)?;
                return result;
            }
            if now.since(start) < step / 2 {
                // The attempt has not waited, so the stream is non-blocking.
                thread::sleep(pause.min(step));
                pause = (2 * pause).min(LONGEST_PAUSE);
            } else {
                longest = (2 * longest).min(LONGEST_STEP);
            }
        }
    }
}

impl<S: Socket> Handle<S> {
    /// The timeout that the socket had before the first wait.
    fn timeout(&self, direction: Direction) -> io::Result<Option<Duration>> {
        let timeout = match direction {
            Direction::Read => &self.timeouts.read,
            Direction::Write => &self.timeouts.write,
        };
        if let Some(timeout) = timeout.get() {
            return Ok(*timeout);
        }
        // Another thread may have stored the timeout meanwhile, and changed that of the socket.
        let found = self.socket.timeout(direction)?;
        Ok(*timeout.get_or_init(|| found))
    }

    /// Gives the socket its timeouts back, unless clones still use it.
    fn restore(self) -> S {
        let Self { socket, timeouts } = self;
        // Exactly one of several clones that are dropped at the same time gets the value.
        if let Some(Timeouts { read, write }) = Arc::into_inner(timeouts) {
            for (direction, timeout) in [(Direction::Read, read), (Direction::Write, write)] {
                if let Some(timeout) = timeout.into_inner() {
                    // The socket has accepted this timeout before.
                    let _ = socket.restore(direction, timeout);
                }
            }
        }
        socket
    }
}

impl<S: Socket> Drop for CancellableStream<S> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            drop(handle.restore());
        }
    }
}

impl<S: Socket> Read for &CancellableStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.transfer(Direction::Read, |socket| socket.receive(buffer))
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.transfer(Direction::Read, |socket| socket.receive_vectored(buffers))
    }
}

impl<S: Socket> Read for CancellableStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(buffers)
    }
}

impl<S: Socket> Write for &CancellableStream<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.transfer(Direction::Write, |socket| socket.send(buffer))
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.transfer(Direction::Write, |socket| socket.send_vectored(buffers))
    }

    /// Does nothing: a socket has no buffer to flush.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<S: Socket> Write for CancellableStream<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&*self).write(buffer)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<S: Socket + fmt::Debug> fmt::Debug for CancellableStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellableStream")
            .field("stream", self.get_ref())
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
