//! [`CancellableListener`]: accepts connections in steps, and checks the token in between.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};

use crate::time::Clock;
use crate::token::CancelToken;

use super::check_deadline;

/// A listener of the standard library: [`TcpListener`], on Unix `UnixListener`, or a reference to
/// one.
///
/// This trait cannot be implemented for other types.
pub trait Listener: Accept<<Self as Listener>::Stream, <Self as Listener>::Address> {
    /// The stream to a client: [`TcpStream`], or `UnixStream`.
    type Stream;

    /// The address of a client, as the listener's `accept` returns it.
    type Address;
}

/// A part of [`Listener`] that users cannot name.
pub trait Accept<Stream, Address> {
    fn try_accept(&self) -> io::Result<(Stream, Address)>;
    fn set_mode(&self, is_nonblocking: bool) -> io::Result<()>;
}

macro_rules! listener {
    ($listener:ty, $stream:ty, $address:ty) => {
        impl Listener for $listener {
            type Stream = $stream;
            type Address = $address;
        }

        impl Accept<$stream, $address> for $listener {
            fn try_accept(&self) -> io::Result<($stream, $address)> {
                let (stream, address) = self.accept()?;
                // On some systems a stream inherits the mode of its listener.
                stream.set_nonblocking(false)?;
                Ok((stream, address))
            }

            fn set_mode(&self, is_nonblocking: bool) -> io::Result<()> {
                self.set_nonblocking(is_nonblocking)
            }
        }
    };
}

listener!(TcpListener, TcpStream, SocketAddr);
#[cfg(unix)]
listener!(UnixListener, UnixStream, UnixAddr);

impl<L: Listener> Listener for &L {
    type Stream = L::Stream;
    type Address = L::Address;
}

impl<L: Listener> Accept<L::Stream, L::Address> for &L {
    fn try_accept(&self) -> io::Result<(L::Stream, L::Address)> {
        (**self).try_accept()
    }

    fn set_mode(&self, is_nonblocking: bool) -> io::Result<()> {
        (**self).set_mode(is_nonblocking)
    }
}

/// A listener whose [`accept`](Self::accept) ends when a token is cancelled.
///
/// It holds a [`TcpListener`], on Unix also a `UnixListener`, or a reference to one. Threads can
/// share it by reference.
///
/// ```
/// use std::io;
/// use std::net::{TcpListener, TcpStream};
/// use std::thread;
/// use timeout_runtime::CancelToken;
/// use timeout_runtime::net::CancellableListener;
///
/// /// Accepts clients until the server shuts down. Returns how many there were.
/// fn accept_all(listener: TcpListener, shutdown: &CancelToken) -> io::Result<u32> {
///     let listener = CancellableListener::new(listener, shutdown)?;
///     let mut clients = 0;
///     loop {
///         match listener.accept() {
///             Ok((_client, _address)) => clients += 1,
///             Err(_) if shutdown.is_cancelled() => return Ok(clients),
///             Err(error) => return Err(error),
///         }
///     }
/// }
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let mut client = TcpStream::connect(listener.local_addr()?)?;
/// let shutdown = CancelToken::new();
/// let server = thread::spawn({
///     let shutdown = shutdown.clone();
///     move || accept_all(listener, &shutdown)
/// });
/// # // The server has accepted the client once it closes the connection.
/// # io::Read::read(&mut client, &mut [0])?;
/// shutdown.cancel();
/// assert_eq!(server.join().unwrap()?, 1);
/// # Ok::<(), io::Error>(())
/// ```
///
/// # Waits
///
/// The standard library has no accept with a timeout. So the listener is non-blocking while this
/// value exists, and is tried again after pauses that grow to 10 ms. A connection that comes after
/// a long time without any is accepted up to 10 ms later. Connections in the queue of the listener
/// are accepted without a pause.
///
/// Other handles of the listener are non-blocking, too, until this value is dropped or
/// [`into_inner`](Self::into_inner) is called. Then the listener is blocking, whatever it was
/// before.
pub struct CancellableListener<L: Listener> {
    token: CancelToken,
    /// `None` only after `into_inner`.
    listener: Option<L>,
}

impl<L: Listener> CancellableListener<L> {
    /// Wraps a listener. Its accepts end when `token` is cancelled.
    ///
    /// # Errors
    ///
    /// Returns the error of the listener if it cannot be made non-blocking.
    pub fn new(listener: L, token: &CancelToken) -> io::Result<Self> {
        listener.set_mode(true)?;
        Ok(Self {
            token: token.clone(),
            listener: Some(listener),
        })
    }

    /// Blocks until a client connects. Returns the stream, which is blocking, and the address of
    /// the client, as [`TcpListener::accept`] does.
    ///
    /// The wait ends at the token's deadline, and at any other cancellation. No connection is lost:
    /// a connection that is not returned stays in the queue of the listener.
    ///
    /// The stream does not know the token: wrap it in a
    /// [`CancellableStream`](super::CancellableStream) with this token or with another one.
    ///
    /// # Errors
    ///
    /// Returns the [error of the token](super#errors-of-the-token) once the token is cancelled,
    /// otherwise the error of the listener.
    pub fn accept(&self) -> io::Result<(L::Stream, L::Address)> {
        let listener = self.get_ref();
        let accepted = self
            .token
            .wait_until_on(Clock::Real, || match listener.try_accept() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                accepted => Some(accepted),
            })?;
        if accepted.is_err() {
            check_deadline(&self.token)?;
        }
        accepted
    }

    /// Replaces the token: later accepts end when `token` is cancelled.
    pub fn set_token(&mut self, token: &CancelToken) {
        self.token = token.clone();
    }

    /// Returns the listener, for example to read its address.
    #[must_use]
    pub fn get_ref(&self) -> &L {
        match &self.listener {
            Some(listener) => listener,
            None => unreachable!("only `into_inner` takes the listener"),
        }
    }

    /// Returns the listener, which is blocking.
    #[must_use]
    pub fn into_inner(mut self) -> L {
        match self.listener.take() {
            Some(listener) => restored(listener),
            None => unreachable!("only this function takes the listener"),
        }
    }
}

/// Makes a listener blocking again.
fn restored<L: Listener>(listener: L) -> L {
    // The listener could be made non-blocking before.
    let _ = listener.set_mode(false);
    listener
}

impl<L: Listener> Drop for CancellableListener<L> {
    fn drop(&mut self) {
        drop(self.listener.take().map(restored));
    }
}

impl<L: Listener + fmt::Debug> fmt::Debug for CancellableListener<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellableListener")
            .field("listener", self.get_ref())
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A listener that fails because of the cancellation.
    struct Fails(CancelToken);

    impl Listener for Fails {
        type Stream = ();
        type Address = ();
    }

    impl Accept<(), ()> for Fails {
        fn try_accept(&self) -> io::Result<((), ())> {
            self.0.cancel();
            Err(io::Error::other("closed"))
        }

        fn set_mode(&self, _: bool) -> io::Result<()> {
            Ok(())
        }
    }

    // Fails if the token is not checked after an error.
    #[test]
    fn a_listener_that_fails_after_the_cancellation_has_the_error_of_the_token() {
        let token = CancelToken::new();
        let listener = CancellableListener::new(Fails(token.clone()), &token).unwrap();
        let error = listener.accept().unwrap_err();
        assert!(error.downcast::<crate::outcome::TimeoutError>().is_ok());
    }
}
