//! `net::CancellableListener`: a cancellation ends an accept, and loses no connection.

use crate::concurrent::{must_return, run_concurrently};
use crate::socket_pairs::token_error;
use crate::support;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use support::{EVERY_WAY, Gate, SOON, assert_timed_out, limit, short};
use timeout_runtime::net::CancellableListener;
use timeout_runtime::{CancelToken, Cause};

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[test]
fn a_client_that_connects_later_is_accepted_and_its_stream_blocks() {
    let ((listener, address), token) = (listener(), CancelToken::new());
    let listener = CancellableListener::new(listener, &token).unwrap();
    let connected = Gate::new();
    let client = {
        let connected = connected.clone();
        thread::spawn(move || {
            let mut client = TcpStream::connect(address).unwrap();
            connected.wait();
            client.write_all(b"ping").unwrap();
            client.local_addr().unwrap()
        })
    };
    let (mut stream, peer) = listener.accept().unwrap();
    connected.open();
    let mut received = [0; 4];
    // A non-blocking stream would have nothing to read yet.
    stream.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"ping");
    assert_eq!(client.join().unwrap(), peer);
}

#[cfg(unix)]
#[test]
fn a_unix_listener_accepts_until_the_cancellation() {
    use std::os::unix::net::{UnixListener, UnixStream};

    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("listeners-{}", std::process::id()));
    let (listener, token) = (UnixListener::bind(&path).unwrap(), CancelToken::new());
    let listener = CancellableListener::new(&listener, &token).unwrap();
    let mut client = UnixStream::connect(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    client.write_all(b"ping").unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut received = [0; 4];
    stream.read_exact(&mut received).unwrap();
    token.cancel();
    assert!(token_error(listener.accept()).is_cancelled());
}

#[test]
fn an_accept_ends_at_the_deadline_of_the_call() {
    for way in EVERY_WAY {
        let (listener, _) = listener();
        let outcome = way.run(&limit("listeners::accept", short()), move |token| {
            let accepted = CancellableListener::new(listener, &token)?.accept();
            let error = token_error(accepted);
            assert_eq!(error.cause(), Cause::TimedOut, "{way:?}");
            Err::<(), std::io::Error>(error.into())
        });
        assert_timed_out(way, &outcome);
    }
}

#[test]
fn an_accept_ends_with_the_cancellation() {
    let ((listener, _), token) = (listener(), CancelToken::new());
    let listener = CancellableListener::new(listener, &token).unwrap();
    let started = Gate::new();
    let accepts = {
        let started = started.clone();
        thread::spawn(move || {
            started.open();
            listener.accept()
        })
    };
    started.wait();
    token.cancel_with("shutdown");
    let accepted = must_return(|| accepts.join().unwrap());
    assert_eq!(token_error(accepted), token.check().unwrap_err());
}

#[test]
fn with_a_cancelled_token_a_connection_stays_in_the_queue() {
    let ((listener, address), token) = (listener(), CancelToken::new());
    let mut listener = CancellableListener::new(listener, &token).unwrap();
    let client = TcpStream::connect(address).unwrap();
    token.cancel();
    assert!(token_error(listener.accept()).is_cancelled());
    listener.set_token(&CancelToken::new());
    let (_, peer) = listener.accept().unwrap();
    assert_eq!(peer, client.local_addr().unwrap());
}

/// A listener that is shut down accepts nothing any more.
#[cfg(target_os = "linux")]
#[test]
fn an_error_of_the_listener_is_returned_and_after_the_cancellation_that_of_the_token() {
    use std::net::Shutdown;
    use std::os::fd::OwnedFd;

    let ((listener, _), token) = (listener(), CancelToken::new());
    let handle = OwnedFd::from(listener.try_clone().unwrap());
    let listener = CancellableListener::new(listener, &token).unwrap();
    TcpStream::from(handle).shutdown(Shutdown::Both).unwrap();
    let error = listener.accept().unwrap_err();
    assert!(error.downcast::<timeout_runtime::TimeoutError>().is_err());
    token.cancel();
    assert!(token_error(listener.accept()).is_cancelled());
}

#[test]
fn the_listener_blocks_again_afterwards() {
    let accepts_later = |listener: TcpListener| {
        let address = listener.local_addr().unwrap();
        let accepts = thread::spawn(move || listener.accept());
        // A non-blocking accept would have failed by then.
        let is_early = accepts.is_finished();
        let client = TcpStream::connect(address).unwrap();
        let (_, peer) = must_return(|| accepts.join().unwrap()).unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        assert!(!is_early);
    };
    let ((own, _), token) = (listener(), CancelToken::new());
    let handle = own.try_clone().unwrap();
    drop(CancellableListener::new(own, &token).unwrap());
    accepts_later(handle);

    let (own, _) = listener();
    let listener = CancellableListener::new(own, &token).unwrap();
    accepts_later(listener.into_inner());
}

#[test]
fn threads_that_share_a_listener_accept_each_connection_once() {
    const THREADS: usize = 8;
    const CLIENTS: usize = 200;

    let ((listener, address), token) = (listener(), CancelToken::new());
    let listener = CancellableListener::new(listener, &token).unwrap();
    let (sender, accepted) = channel();
    let running = AtomicUsize::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let sender = sender.clone();
                let error = loop {
                    match listener.accept() {
                        Ok((_, peer)) => sender.send(peer).unwrap(),
                        error => break token_error(error),
                    }
                };
                assert!(error.is_cancelled());
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let mut peers: Vec<_> = (0..CLIENTS)
            .map(|_| accepted.recv_timeout(SOON).unwrap())
            .collect();
        let mut expected: Vec<_> = clients.iter().map(|c| c.local_addr().unwrap()).collect();
        peers.sort();
        expected.sort();
        token.cancel();
        assert_eq!(peers, expected);
    });
    assert_eq!(running.into_inner(), 0);
}

/// Each connection is accepted, or is still in the queue after the cancellation.
#[test]
fn no_connection_is_lost_to_a_cancellation() {
    run_concurrently(4, 200, |_| {
        let ((listener, address), token) = (listener(), CancelToken::new());
        let mut listener = CancellableListener::new(listener, &token).unwrap();
        let cancels = token.clone();
        let client = thread::spawn(move || {
            let client = TcpStream::connect(address).unwrap();
            cancels.cancel();
            client.local_addr().unwrap()
        });
        let first = listener.accept();
        let connected = client.join().unwrap();
        listener.set_token(&CancelToken::new());
        let (_, peer) = match first {
            Ok(accepted) => accepted,
            error => {
                assert!(token_error(error).is_cancelled());
                listener.accept().unwrap()
            }
        };
        assert_eq!(peer, connected);
    });
}
