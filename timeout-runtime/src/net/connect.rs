//! [`connect`]: resolves an address and connects to it, on a worker.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::call::options::CallOptions;
use crate::call::worker;
use crate::outcome::of_result;
use crate::terms::{Policy, PolicyRef};
use crate::token::CancelToken;

use super::{CancellableStream, check_deadline};

static POLICY: Policy = Policy::new("timeout_runtime::net::connect");

/// How long an address is tried at least, if the deadline allows that: enough for the round trip to
/// a server that is far away.
const SHORTEST_ATTEMPT: Duration = Duration::from_millis(250);

/// Connects to a TCP server, and returns the stream for reads and writes that end with `token`.
///
/// The wait ends at the token's deadline, and right after any other cancellation.
///
/// If `address` resolves to several addresses, they are tried in order. Each gets an equal share of
/// the time that is left, so that an address that does not respond leaves time for the others. An
/// address gets at least 250 ms, but at most half of the time that is left if others follow.
/// Without a deadline, each address is tried for as long as the operating system does.
///
/// ```
/// use std::net::TcpListener;
/// use timeout_runtime::{CancelToken, net};
///
/// let server = TcpListener::bind("127.0.0.1:0")?;
/// let stream = net::connect(server.local_addr()?, &CancelToken::new())?;
/// assert_eq!(stream.get_ref().peer_addr()?, server.local_addr()?);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # On a worker
///
/// The system can interrupt neither the resolution of a name nor an attempt to connect. So both run
/// in a call of their own, on a worker, with the name `timeout_runtime::net::connect` in events.
/// After a cancellation this call may still run, abandoned: until the resolver returns, or until
/// the time for the current address has passed. It then closes its connection, if it has one.
///
/// A caller that itself runs on a worker needs a second worker meanwhile. If callers of this
/// function take all workers, they wait for each other until their deadlines.
///
/// # Errors
///
/// Returns the [error of the token](super#errors-of-the-token) if the token is cancelled. Otherwise
/// returns the error of the resolver or that of the last address. Without a worker, and while
/// abandoned calls of this name keep half of the workers, the error has a
/// [`TimeoutError`](crate::TimeoutError) inside, with the cause
/// [`NoWorker`](crate::Cause::NoWorker).
///
/// # Panics
///
/// A panic of the implementation of [`ToSocketAddrs`] resumes here.
pub fn connect<A>(address: A, token: &CancelToken) -> io::Result<CancellableStream<TcpStream>>
where
    A: ToSocketAddrs + Send + 'static,
{
    token.check()?;
    let options = CallOptions::new(PolicyRef::Static(&POLICY))
        .detached()
        .link(token);
    let operation = move |token: CancelToken| connect_in_turn(&address, &token);
    let result = worker::sync_worker(options, of_result, operation);
    match result.unwrap_or_else(|error| Err(error.into())) {
        Ok(stream) => Ok(CancellableStream::new(stream, token)),
        Err(error) => {
            check_deadline(token)?;
            Err(error)
        }
    }
}

/// Tries one address after the other.
fn connect_in_turn(address: &impl ToSocketAddrs, token: &CancelToken) -> io::Result<TcpStream> {
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    let mut failure = None;
    for (tried, address) in addresses.iter().enumerate() {
        token.check()?;
        let attempt = match token.remaining() {
            Some(left) => TcpStream::connect_timeout(address, share(left, addresses.len() - tried)),
            None => TcpStream::connect(address),
        };
        match attempt {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure
        .unwrap_or_else(|| io::Error::new(ErrorKind::InvalidInput, "the name has no addresses")))
}

/// How long the first of `addresses` may be tried within the time that is `left`.
fn share(left: Duration, addresses: usize) -> Duration {
    let equal = left / u32::try_from(addresses).unwrap_or(u32::MAX).max(1);
    let longest = if addresses > 1 { left / 2 } else { left };
    equal
        .max(SHORTEST_ATTEMPT)
        .min(longest)
        // The standard library refuses a timeout of zero.
        .max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_share_the_time_that_is_left() {
        let shares = [
            (8_000, 4, 2_000),
            (8_000, 1, 8_000),
            (1_000, 8, 250),
            (400, 8, 200),
            (200, 2, 100),
            (100, 1, 100),
            (0, 3, 1),
        ];
        for (left, addresses, expected) in shares {
            let share = share(Duration::from_millis(left), addresses);
            assert_eq!(
                share,
                Duration::from_millis(expected),
                "{left}, {addresses}"
            );
        }
    }
}
