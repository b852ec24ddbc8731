//! [`Socket`]: the sockets of the standard library, as the waits of this module use them.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connected socket: [`TcpStream`], on Unix `UnixStream`, or a reference to one.
///
/// This trait cannot be implemented for other types.
pub trait Socket: Transfer {}

/// Whether a wait reads or writes.
#[derive(Clone, Copy, Debug)]
pub enum Direction {
    Read,
    Write,
}

/// A part of [`Socket`] that users cannot name.
pub trait Transfer {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize>;
    fn receive_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize>;
    fn send(&self, buffer: &[u8]) -> io::Result<usize>;
    fn send_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Another handle of the socket.
    fn duplicate(&self) -> io::Result<Self>
    where
        Self: Sized;

    /// The timeout of the socket.
    fn timeout(&self, direction: Direction) -> io::Result<Option<Duration>>;

    /// Makes an attempt return within about `step`, or right away.
    ///
    /// On Windows, timeouts are half a second longer, and may lose data. So the socket becomes
    /// non-blocking there.
    fn limit_attempts(&self, direction: Direction, step: Duration) -> io::Result<()>;

    /// Undoes `limit_attempts` for a socket that had this `timeout` before.
    fn restore(&self, direction: Direction, timeout: Option<Duration>) -> io::Result<()>;
}

macro_rules! socket {
    ($socket:ty) => {
        impl Socket for $socket {}

        impl Transfer for $socket {
            fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
                Read::read(&mut &*self, buffer)
            }

            fn receive_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                Read::read_vectored(&mut &*self, buffers)
            }

            fn send(&self, buffer: &[u8]) -> io::Result<usize> {
                Write::write(&mut &*self, buffer)
            }

            fn send_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
                Write::write_vectored(&mut &*self, buffers)
            }

            fn duplicate(&self) -> io::Result<Self> {
                self.try_clone()
            }

            fn timeout(&self, direction: Direction) -> io::Result<Option<Duration>> {
                match direction {
                    Direction::Read => self.read_timeout(),
                    Direction::Write => self.write_timeout(),
                }
            }

            fn limit_attempts(&self, direction: Direction, step: Duration) -> io::Result<()> {
                if cfg!(windows) {
                    return self.set_nonblocking(true);
                }
                match direction {
                    Direction::Read => self.set_read_timeout(Some(step)),
                    Direction::Write => self.set_write_timeout(Some(step)),
                }
            }

            fn restore(&self, direction: Direction, timeout: Option<Duration>) -> io::Result<()> {
                if cfg!(windows) {
                    return self.set_nonblocking(false);
                }
                match direction {
                    Direction::Read => self.set_read_timeout(timeout),
                    Direction::Write => self.set_write_timeout(timeout),
                }
            }
        }
    };
}

socket!(TcpStream);
#[cfg(unix)]
socket!(UnixStream);

impl<S: Socket> Socket for &S {}

impl<S: Transfer> Transfer for &S {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).receive(buffer)
    }

    fn receive_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (**self).receive_vectored(buffers)
    }

    fn send(&self, buffer: &[u8]) -> io::Result<usize> {
        (**self).send(buffer)
    }

    fn send_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (**self).send_vectored(buffers)
    }

    fn duplicate(&self) -> io::Result<Self> {
        Ok(self)
    }

    fn timeout(&self, direction: Direction) -> io::Result<Option<Duration>> {
        (**self).timeout(direction)
    }

    fn limit_attempts(&self, direction: Direction, step: Duration) -> io::Result<()> {
        (**self).limit_attempts(direction, step)
    }

    fn restore(&self, direction: Direction, timeout: Option<Duration>) -> io::Result<()> {
        (**self).restore(direction, timeout)
    }
}
