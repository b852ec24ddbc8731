//! Reads from sockets within a limit. A blocked read cannot check a token, so a `CancellableStream`
//! does: at the cancellation the read returns, and its thread is free.
//!
//! ```text
//! cargo run -p timeout-examples --example blocking_io
//! ```

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use timeout_runtime::net::CancellableStream;
use timeout_runtime::{timeout, workers};

#[timeout(name = "read_line", limit = limit)]
fn read_line(stream: TcpStream, limit: Duration) -> io::Result<String> {
    let stream = CancellableStream::new(stream, &cancel_token);
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line)
}

fn main() -> io::Result<()> {
    let server = TcpListener::bind(("127.0.0.1", 0))?;
    let connect = || -> io::Result<_> {
        let client = TcpStream::connect(server.local_addr()?)?;
        let (peer, _) = server.accept()?;
        Ok((client, peer))
    };

    let minute = Duration::from_secs(60);
    let (client, mut responsive) = connect()?;
    responsive.write_all(b"hello\n")?;
    println!("first server: {}", read_line(client, minute)?.trim_end());

    let (client, silent) = connect()?;
    match read_line(client, Duration::from_millis(200)) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            println!("second server: timed out");
        }
        other => println!("second server: {other:?}"),
    }

    let blocked = workers::drain(minute);
    println!("reads still blocked: {blocked}");
    drop(silent);
    Ok(())
}
