//! `net::connect`: every address gets its share of the time, and a cancellation ends the wait.

use crate::concurrent::must_return;
use crate::own_process::in_own_process;
use crate::socket_pairs::token_error;
use crate::support;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::thread;
use std::vec;

use support::{EVERY_WAY, Gate, SOON, assert_timed_out, limit, short};
use timeout_runtime::{CancelToken, Cause, TimeoutError, net, workers};
use tokio::net::TcpSocket;

/// A name with these addresses. It is resolved once the gate is open.
struct Name {
    addresses: Vec<SocketAddr>,
    asked: Gate,
    answers: Gate,
}

impl Name {
    fn of(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let name = Self::unresolved(addresses);
        name.answers.open();
        name
    }

    fn unresolved(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self {
            addresses: addresses.into_iter().collect(),
            asked: Gate::new(),
            answers: Gate::new(),
        }
    }
}

impl ToSocketAddrs for Name {
    type Iter = vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        self.asked.open();
        self.answers.wait();
        Ok(self.addresses.clone().into_iter())
    }
}

/// A server on this machine, and its address.
fn server() -> (TcpListener, SocketAddr) {
    let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = server.local_addr().unwrap();
    (server, address)
}

/// Keeps an address without listening there, so that it refuses each connection.
struct Refusing(TcpSocket);

impl Refusing {
    fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self(socket)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}

#[test]
fn a_connection_works_until_the_token_is_cancelled() {
    let (token, (server, address)) = (CancelToken::new(), server());
    let mut stream = net::connect(address, &token).unwrap();
    let (mut peer, _) = server.accept().unwrap();
    stream.write_all(b"ping").unwrap();
    let mut received = [0; 4];
    peer.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"ping");
    token.cancel();
    assert!(token_error(stream.read(&mut received)).is_cancelled());
    assert_eq!(stream.into_inner().peer_addr().unwrap(), address);
}

#[test]
fn names_and_ports_in_every_form_are_resolved() {
    let (_server, address) = server();
    let (token, port) = (CancelToken::new(), address.port());
    let streams = [
        net::connect(address.to_string(), &token),
        net::connect(("127.0.0.1", port), &token),
        net::connect(("localhost".to_owned(), port), &token),
        net::connect((address.ip(), port), &token),
    ];
    for stream in streams {
        assert_eq!(stream.unwrap().get_ref().peer_addr().unwrap(), address);
    }
}

#[test]
fn an_address_that_refuses_is_followed_by_the_next() {
    let (_server, address) = server();
    let refusing = [Refusing::new(), Refusing::new()];
    let name = Name::of(refusing.iter().map(Refusing::address).chain([address]));
    let stream = net::connect(name, &CancelToken::new()).unwrap();
    assert_eq!(stream.get_ref().peer_addr().unwrap(), address);
}

#[test]
fn if_all_addresses_refuse_the_error_is_that_of_the_last() {
    let refusing = [Refusing::new(), Refusing::new()];
    let name = Name::of(refusing.iter().map(Refusing::address));
    let error = net::connect(name, &CancelToken::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert!(error.downcast::<TimeoutError>().is_err());
}

#[test]
fn a_name_without_addresses_is_an_error() {
    let error = net::connect(Name::of([]), &CancelToken::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn with_a_cancelled_token_no_name_is_resolved() {
    let (token, name) = (CancelToken::new(), Name::of([]));
    let asked = name.asked.clone();
    token.cancel_with("shutdown");
    assert_eq!(
        token_error(net::connect(name, &token)),
        token.check().unwrap_err()
    );
    assert!(!asked.is_open());
}

/// The resolver of the system cannot be interrupted. It keeps its worker, and the caller leaves.
#[test]
fn a_resolver_that_blocks_does_not_hold_its_caller() {
    in_own_process(|| {
        let (token, (server, address)) = (CancelToken::new(), server());
        let name = Name::unresolved([address]);
        let (asked, answers) = (name.asked.clone(), name.answers.clone());
        let connects = {
            let token = token.clone();
            thread::spawn(move || net::connect(name, &token))
        };
        asked.wait();
        token.cancel();
        let error = token_error(must_return(|| connects.join().unwrap()));
        assert_eq!((error.name(), error.cause()), ("token", Cause::Cancelled));

        let [abandoned] = &workers::abandoned()[..] else {
            panic!("{:?}", workers::abandoned());
        };
        assert_eq!(abandoned.name, "timeout_runtime::net::connect");
        answers.open();
        assert_eq!(workers::drain(SOON), 0);
        // The resolved name came too late for an attempt to connect.
        server.set_nonblocking(true).unwrap();
        assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_wait_for_the_resolver_ends_at_the_deadline_of_the_call() {
    for way in EVERY_WAY {
        let name = Name::unresolved([]);
        let answers = name.answers.clone();
        let outcome = way.run(&limit("connections::resolve", short()), move |token| {
            let error = token_error(net::connect(name, &token));
            assert_eq!(
                (error.name(), error.cause()),
                ("connections::resolve", Cause::TimedOut)
            );
            Err::<(), _>(error)
        });
        assert_timed_out(way, &outcome);
        answers.open();
    }
}

/// The deadline of the enclosing call does not count with another token.
#[test]
fn the_given_token_alone_ends_the_wait() {
    let (_server, address) = server();
    let mut connected = None;
    let outcome = limit("connections::other", short())
        .inline()
        .outcome(|own| {
            support::until_past(&own);
            connected = Some(net::connect(address, &CancelToken::new()));
            own.check()
        });
    assert!(outcome.timeout_error().is_some());
    assert!(matches!(connected, Some(Ok(_))), "{connected:?}");
}

#[test]
fn a_panic_of_a_resolver_resumes_in_the_caller() {
    struct Panics;

    impl ToSocketAddrs for Panics {
        type Iter = vec::IntoIter<SocketAddr>;

        fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
            std::panic::resume_unwind(Box::new("no name"));
        }
    }

    let caught = std::panic::catch_unwind(|| net::connect(Panics, &CancelToken::new()));
    assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "no name");
}

/// A server whose queue of connections is full. Linux drops further attempts to connect, so such a
/// server does not respond at all.
#[cfg(target_os = "linux")]
mod without_a_response {
    use super::*;
    use crate::socket_pairs::token_until;
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use support::LONG;
    use timeout_runtime::Deadline;

    struct FullServer {
        address: SocketAddr,
        _listener: TcpListener,
        _queue: Vec<TcpStream>,
    }

    fn full_server() -> FullServer {
        let listener = support::runtime().block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            socket.listen(1).unwrap().into_std().unwrap()
        });
        let address = listener.local_addr().unwrap();
        let attempt = || TcpStream::connect_timeout(&address, Duration::from_millis(500));
        let queue = std::iter::from_fn(|| attempt().ok()).collect();
        FullServer {
            address,
            _listener: listener,
            _queue: queue,
        }
    }

    #[test]
    fn an_attempt_ends_at_the_deadline() {
        let full = full_server();
        let token = token_until(Deadline::after(Duration::from_millis(short())));
        let error = token_error(net::connect(full.address, &token));
        assert_eq!(error.cause(), Cause::DeadlineExceeded);
    }

    #[test]
    fn an_attempt_ends_with_the_cancellation() {
        let full = full_server();
        let token = token_until(Deadline::after(Duration::from_millis(LONG)));
        let name = Name::of([full.address]);
        let asked = name.asked.clone();
        let connects = {
            let token = token.clone();
            thread::spawn(move || net::connect(name, &token))
        };
        asked.wait();
        token.cancel();
        let connect = must_return(|| connects.join().unwrap());
        assert!(token_error(connect).is_cancelled());
    }

    #[test]
    fn an_address_leaves_time_for_the_others() {
        let (full, (_server, address)) = (full_server(), server());
        let start = Instant::now();
        let limit = Duration::from_secs(4);
        let token = token_until(Deadline::after(limit));
        let name = Name::of([full.address, address]);
        let stream = net::connect(name, &token).unwrap();
        assert_eq!(stream.get_ref().peer_addr().unwrap(), address);
        assert!(start.elapsed() >= limit / 2, "the first address was tried");
    }
}
