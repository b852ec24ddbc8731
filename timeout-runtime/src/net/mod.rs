//! Waits for sockets in blocking code that end with a token: [`CancellableStream`] reads and
//! writes, [`CancellableListener`] accepts connections, and [`connect`] connects.
//!
//! ```
//! use std::io::{self, BufRead, BufReader, Write};
//! use std::net::{SocketAddr, TcpListener};
//! use timeout_runtime::{net, timeout};
//!
//! #[timeout(name = "greet", ms = 100)]
//! fn greet(server: SocketAddr) -> io::Result<String> {
//!     let mut stream = net::connect(server, &cancel_token)?;
//!     stream.write_all(b"hello\n")?;
//!     let mut line = String::new();
//!     BufReader::new(stream).read_line(&mut line)?;
//!     Ok(line)
//! }
//!
//! let silent = TcpListener::bind("127.0.0.1:0")?;
//! let error = greet(silent.local_addr()?).unwrap_err();
//! assert_eq!(error.kind(), io::ErrorKind::TimedOut);
//! # Ok::<(), io::Error>(())
//! ```
//!
//! # Errors of the token
//!
//! Once the token is cancelled, each wait returns the error of
//! [`CancelToken::check`] as an [`io::Error`](std::io::Error), with a [`TimeoutError`] inside. That
//! error comes in place of the end of the stream and of any other error, so half a response never
//! looks like a whole one.
//!
//! # The connection after a cancellation
//!
//! A wait that ends with the token's error has neither read nor written a byte, and has not shut
//! the connection down. So the connection works as before if the wait was a single `read` of a
//! message that had not begun: a later read, with another token, gets the whole message.
//!
//! Methods that make several reads or writes, such as `read_exact`, `read_line` and `write_all`,
//! may have moved a part of their bytes when the token's error ends them. How many is unknown, so
//! drop that connection.
//!
//! The peer does not notice a cancellation. Dropping the last handle of the stream tells it.
//!
//! This module is not available on WebAssembly.

mod connect;
mod listener;
mod socket;
mod stream;

use crate::outcome::TimeoutError;
use crate::token::CancelToken;

use std::time::Duration;

pub use connect::connect;
pub use listener::{CancellableListener, Listener};
pub use socket::Socket;
pub use stream::CancellableStream;

/// As `check`, and also an error if the deadline has passed and the timer has not noticed yet.
///
/// A peer that shares the deadline may close the connection a little before this timer.
fn check_deadline(token: &CancelToken) -> Result<(), TimeoutError> {
    // A call that has ended in time has no deadline any more.
    while token.deadline().has_passed() {
        token.sleep(Duration::from_millis(1))?;
    }
    token.check()
}
