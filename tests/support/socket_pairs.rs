//! Two connected sockets on this machine, and tests that run on each kind of socket.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::fmt::Debug;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::Duration;

use timeout_runtime::net::Socket;
use timeout_runtime::{CallContext, CancelToken, Deadline, TimeoutError};

/// A kind of socket.
pub trait Connected: Socket + Read + Write + Debug + Send + Sync + Sized + 'static {
    /// Two sockets that are connected with each other.
    fn pair() -> (Self, Self);
    fn other_handle(&self) -> Self;
    fn set_timeouts(&self, timeout: Option<Duration>);
    /// The timeouts of reads and of writes.
    fn timeouts(&self) -> [Option<Duration>; 2];
    fn set_mode(&self, is_nonblocking: bool);
}

macro_rules! connected {
    ($socket:ty, $pair:expr) => {
        impl Connected for $socket {
            fn pair() -> (Self, Self) {
                $pair
            }

            fn other_handle(&self) -> Self {
                self.try_clone().unwrap()
            }

            fn set_timeouts(&self, timeout: Option<Duration>) {
                self.set_read_timeout(timeout).unwrap();
                self.set_write_timeout(timeout).unwrap();
            }

            fn timeouts(&self) -> [Option<Duration>; 2] {
                [self.read_timeout().unwrap(), self.write_timeout().unwrap()]
            }

            fn set_mode(&self, is_nonblocking: bool) {
                self.set_nonblocking(is_nonblocking).unwrap();
            }
        }
    };
}

connected!(TcpStream, {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (stream, listener.accept().unwrap().0)
});
#[cfg(unix)]
connected!(UnixStream, UnixStream::pair().unwrap());

/// Declares a test that runs for each kind of socket.
macro_rules! for_each_socket {
    ($(#[$attribute:meta])* fn $name:ident<$kind:ident>() $body:block) => {
        $(#[$attribute])*
        #[test]
        fn $name() {
            fn test<$kind: Connected>() $body

            test::<std::net::TcpStream>();
            #[cfg(unix)]
            test::<std::os::unix::net::UnixStream>();
        }
    };
}
pub(crate) use for_each_socket;

/// The error of the token inside `result`.
#[track_caller]
pub fn token_error<T: Debug>(result: io::Result<T>) -> TimeoutError {
    let error = result.expect_err("the token is cancelled");
    let kind = error.kind();
    let error = error
        .downcast::<TimeoutError>()
        .expect("the error of the token");
    let is_deadline = error.is_timed_out() || error.is_deadline_exceeded();
    assert_eq!(is_deadline, kind == ErrorKind::TimedOut, "{error:?}");
    error
}

/// A token with a deadline.
pub fn token_until(deadline: Deadline) -> CancelToken {
    let context = CallContext::detached().with_deadline(deadline);
    context.run(CancelToken::current)
}

/// The bytes 0, 1, 2 and so on, which show a lost or repeated one. The period is a prime number.
pub fn bytes(count: usize) -> Vec<u8> {
    (0..=250).cycle().take(count).collect()
}
