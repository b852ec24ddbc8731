//! Sockets, by the module `net` of the runtime.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::time::Duration;

use timeout_runtime::{net, timeout};

use crate::Error;

/// Connects to a server, sends a request, and returns the first line of the response.
///
/// # Errors
///
/// Fails at the limit, or if the socket fails.
#[timeout(name = "greet", limit = limit)]
pub fn greet(server: SocketAddr, request: String, limit: Duration) -> Result<String, Error> {
    let mut stream = net::connect(server, &cancel_token)?;
    stream.write_all(request.as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line)
}
