//! Deadlines over real connections: what the socket sees, and what happens at the far end.

use crate::{support, wire};
use std::convert::Infallible;
use std::future;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use http::{HeaderName, Request, Response};
use hyper::body::Incoming;
use support::{Gate, SOON, runtime};
use timeout_runtime::integrations::tower::{ClientError, DeadlineHeader};
use timeout_runtime::{CallContext, Cause, Deadline, TimeoutError, timeout};
use tower::{BoxError, Service, ServiceExt, service_fn};
use wire::{
    Body, EMPTY, HttpLayer, Served, answered, client, meaning, raw, received, request, serve, text,
    uri, values,
};

const FAR: Duration = Duration::from_secs(600);

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

#[test]
fn the_socket_sees_what_is_left() {
    let grpc = DeadlineHeader::grpc;
    let own = DeadlineHeader::millis(HeaderName::from_static("x-time-left"));
    for (header, limit, letter) in [
        (grpc(), MINUTE, "u"),
        (grpc(), HOUR, "m"),
        (grpc(), 40 * HOUR, "S"),
        (grpc(), 4 * YEAR, "M"),
        (grpc(), 300 * YEAR, "H"),
        (DeadlineHeader::envoy(), MINUTE, ""),
        (own, MINUTE, ""),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let uri = uri(listener.local_addr().expect("it has an address"));
        let name = header.name().clone();
        let runtime = runtime();
        let deadline = Deadline::after(limit);
        let asked = runtime.spawn(async move {
            let context = CallContext::detached().with_deadline(deadline);
            let asked = client(header).oneshot(request(&uri));
            context.scope(asked).await.map_err(Into::into)
        });
        let (mut stream, head) = received(&listener).expect("a request");
        let left = deadline.remaining().expect("it comes");
        stream.write_all(EMPTY).expect("it is sent");
        let answer: Result<_, BoxError> = runtime.block_on(asked).expect("no panic");
        assert!(answer.expect("an answer").status().is_success());

        let told = values(&head, name.as_str());
        assert_eq!(told.len(), 1, "{head}");
        assert!(told[0].ends_with(letter), "{head}");
        let (told, unit) = meaning(told[0]);
        assert!(left <= told && told < limit + unit, "{left:?}: {head}");
    }
}

/// What tells less than is left goes over the wire as it is.
#[test]
fn the_socket_sees_a_header_of_the_request_that_tells_less() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let mut asked = request(&uri(listener.local_addr().expect("it has an address")));
    let value = http::HeaderValue::from_static("99999999n");
    asked.headers_mut().insert("grpc-timeout", value);
    let runtime = runtime();
    let context = CallContext::detached().with_deadline(Deadline::after(FAR));
    let client = client(DeadlineHeader::grpc());
    runtime.spawn(context.scope(async move { client.oneshot(asked).await.map(drop).ok() }));
    let (_stream, head) = received(&listener).expect("a request");
    assert_eq!(values(&head, "grpc-timeout"), ["99999999n"], "{head}");
}

#[test]
fn the_socket_sees_nothing_of_what_comes_too_late() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let uri = uri(listener.local_addr().expect("it has an address"));
    let context = CallContext::current().with_deadline(Deadline::after(Duration::ZERO));
    let client = client(DeadlineHeader::envoy());
    let asked = runtime().block_on(context.scope(client.oneshot(request(&uri))));
    let error: BoxError = asked.expect_err("it is too late").into();
    let error = error.downcast::<ClientError<hyper_util::client::legacy::Error>>();
    let error = error.expect("it is the layer's");
    assert!(matches!(
        *error,
        ClientError::NotSent(Cause::DeadlineExceeded)
    ));
    listener.set_nonblocking(true).expect("it can be asked");
    let none = received(&listener).map_err(|error| error.kind());
    assert!(matches!(none, Err(io::ErrorKind::WouldBlock)));
}

#[test]
fn a_server_answers_when_time_is_up() {
    let runtime = runtime();
    let service = service_fn(|_| future::pending::<Served>());
    let layer = HttpLayer::http(DeadlineHeader::envoy());
    let address = serve(&runtime, &layer, service);
    for head in [
        "x-envoy-expected-rq-timeout-ms: 0\r\n",
        "X-Envoy-Expected-Rq-Timeout-Ms: 100\r\n",
    ] {
        let answer = answered(address, head);
        assert!(answer.starts_with("HTTP/1.1 504 "), "{head}: {answer}");
    }
}

/// A service that tells how long is left, in nanoseconds.
fn left()
-> impl Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    service_fn(|_| {
        let left = Deadline::current().remaining();
        let left = left.map_or("never".to_owned(), |left| left.as_nanos().to_string());
        future::ready(Served::Ok(text(left)))
    })
}

#[test]
fn a_server_reads_the_bytes_of_a_header_as_they_are_meant() {
    let runtime = runtime();
    for (header, lines) in [
        (
            DeadlineHeader::grpc(),
            &[
                "grpc-timeout: 99999999n",
                "GRPC-TIMEOUT: 60000000u",
                "grpc-timeout:600000m",
                "grpc-timeout: \t 600S \t",
                "grpc-timeout: 00000010M",
                "grpc-timeout: 3513600H",
            ][..],
        ),
        (
            DeadlineHeader::envoy(),
            &[
                "x-envoy-expected-rq-timeout-ms: 60000",
                "x-envoy-expected-rq-timeout-ms:   0000000000000000000000060000  ",
                "x-envoy-expected-rq-timeout-ms: 12648960000000",
            ],
        ),
    ] {
        let address = serve(&runtime, &HttpLayer::http(header), left());
        for line in lines {
            let (_, value) = line.split_once(':').expect("a header");
            let (told, _) = meaning(value.trim());
            let start = Instant::now();
            let answer = answered(address, format!("{line}\r\n"));
            let most = start.elapsed();
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            if head.starts_with("HTTP/1.1 504 ") {
                assert!(most >= told, "{line}: {head}");
                continue;
            }
            let left = body.parse().map(Duration::from_nanos);
            let left = left.unwrap_or_else(|_| panic!("{line}: {answer}"));
            assert!(left <= told && left + most >= told, "{line}: {left:?}");
        }
    }
}

/// No header that cannot be read makes a request one without a deadline.
#[test]
fn a_server_refuses_bytes_that_it_cannot_read() {
    let grpc: [&[u8]; 18] = [
        b"",
        b"5",
        b"S",
        b"5s",
        b"5ms",
        b"-5S",
        b"+5S",
        b"5 S",
        b"0.5S",
        b"1e3m",
        b"0x5S",
        b"5S,5S",
        b"5S;5S",
        b"000000005S",
        b"123456789n",
        b"99999999H",
        b"5\xb5",
        b"\xd9\xa5S",
    ];
    let envoy: [&[u8]; 15] = [
        b"",
        b"-1",
        b"+1",
        b"1 1",
        b"1.5",
        b"1e3",
        b"0x10",
        b"1,1",
        b"1000m",
        b"never",
        b"12648960000001",
        b"18446744073709551616",
        b"99999999999999999999999999",
        b"\xe9",
        b"\xd9\xa5",
    ];
    let runtime = runtime();
    for (header, good, bad) in [
        (DeadlineHeader::grpc(), "5S", &grpc[..]),
        (DeadlineHeader::envoy(), "5000", &envoy),
    ] {
        let reached = Gate::new();
        let gate = reached.clone();
        let service = service_fn(move |_| {
            gate.open();
            future::ready(Served::Ok(text("")))
        });
        let name = header.name().to_string();
        let address = serve(&runtime, &HttpLayer::http(header), service);
        let line = |value: &[u8]| [name.as_bytes(), b": ", value, b"\r\n"].concat();
        let twice = [line(good.as_bytes()), line(good.as_bytes())].concat();
        for lines in bad.iter().map(|bad| line(bad)).chain([twice]) {
            let answer = answered(address, &lines);
            let lines = String::from_utf8_lossy(&lines);
            assert!(answer.starts_with("HTTP/1.1 400 "), "{lines}: {answer}");
            assert!(!reached.is_open(), "{lines}");
        }
        answered(address, line(good.as_bytes()));
        assert!(reached.is_open());
    }
}

#[test]
fn a_client_that_hangs_up_stops_the_work() {
    #[timeout(name = "work", secs = 600, run = "worker")]
    async fn work(started: Gate, told: Sender<Option<Cause>>) -> Result<(), TimeoutError> {
        started.open();
        cancel_token.cancelled().await;
        let _ = told.send(cancel_token.cause());
        cancel_token.check()
    }

    let (sender, causes) = channel();
    let started = Gate::new();
    let gate = started.clone();
    let service = service_fn(move |_| {
        let work = work(gate.clone(), sender.clone());
        async move { Served::Ok(text(format!("{:?}", work.await))) }
    });
    let runtime = runtime();
    let layer = HttpLayer::http(DeadlineHeader::envoy());
    let address = serve(&runtime, &layer, service);
    let client = raw(address, "x-envoy-expected-rq-timeout-ms: 600000\r\n");
    started.wait();
    drop(client);
    assert_eq!(causes.recv_timeout(SOON), Ok(Some(Cause::Cancelled)));
}
