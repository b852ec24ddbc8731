//! Deadlines over real HTTP connections: the bytes on the socket and the effect at the server.

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
use timeout_runtime::integrations::tower::{ClientError, DeadlineHeader, ServerLayer};
use timeout_runtime::{CallContext, Cause, Deadline, TimeoutError, timeout};
use tower::{BoxError, Service, ServiceExt, service_fn};
use wire::{
    Body, EMPTY, Served, client, meaning, name, raw, received, request, response_to, serve, text,
    uri, values,
};

const FAR: Duration = Duration::from_secs(600);

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

#[test]
fn the_socket_receives_the_remaining_time() {
    let grpc = || DeadlineHeader::Grpc;
    let own = DeadlineHeader::Millis(HeaderName::from_static("x-time-left"));
    for (header, limit, letter) in [
        (grpc(), MINUTE, "u"),
        (grpc(), HOUR, "m"),
        (grpc(), 40 * HOUR, "S"),
        (grpc(), 4 * YEAR, "M"),
        (grpc(), 300 * YEAR, "H"),
        (DeadlineHeader::Envoy, MINUTE, ""),
        (own, MINUTE, ""),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let uri = uri(listener.local_addr().expect("a local address"));
        let name = name(&header);
        let runtime = runtime();
        let deadline = Deadline::after(limit);
        let asked = runtime.spawn(async move {
            let context = CallContext::detached().with_deadline(deadline);
            let asked = client(header).oneshot(request(&uri));
            context.scope(asked).await.map_err(Into::into)
        });
        let (mut stream, head) = received(&listener).expect("a request");
        let left = deadline.remaining().expect("the deadline is ahead");
        stream.write_all(EMPTY).expect("the response is sent");
        let response: Result<_, BoxError> = runtime.block_on(asked).expect("no panic");
        assert!(response.expect("a response").status().is_success());

        let encoded = values(&head, name.as_str());
        assert_eq!(encoded.len(), 1, "{head}");
        assert!(encoded[0].ends_with(letter), "{head}");
        let (encoded, unit) = meaning(encoded[0]);
        assert!(
            left <= encoded && encoded < limit + unit,
            "{left:?}: {head}"
        );
    }
}

/// An existing header with a shorter time is sent unchanged.
#[test]
fn a_shorter_header_of_the_request_is_sent_unchanged() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let mut asked = request(&uri(listener.local_addr().expect("a local address")));
    let value = http::HeaderValue::from_static("99999999n");
    asked.headers_mut().insert("grpc-timeout", value);
    let runtime = runtime();
    let context = CallContext::detached().with_deadline(Deadline::after(FAR));
    let client = client(DeadlineHeader::Grpc);
    runtime.spawn(context.scope(async move { client.oneshot(asked).await.map(drop).ok() }));
    let (_stream, head) = received(&listener).expect("a request");
    assert_eq!(values(&head, "grpc-timeout"), ["99999999n"], "{head}");
}

#[test]
fn an_expired_request_opens_no_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let uri = uri(listener.local_addr().expect("a local address"));
    let context = CallContext::current().with_deadline(Deadline::after(Duration::ZERO));
    let client = client(DeadlineHeader::Envoy);
    let asked = runtime().block_on(context.scope(client.oneshot(request(&uri))));
    let error: BoxError = asked.expect_err("the deadline has passed").into();
    let error = error.downcast::<ClientError<hyper_util::client::legacy::Error>>();
    let error = error.expect("the layer's error");
    assert!(matches!(
        *error,
        ClientError::NotSent(Cause::DeadlineExceeded)
    ));
    listener.set_nonblocking(true).expect("non-blocking mode");
    let none = received(&listener).map_err(|error| error.kind());
    assert!(matches!(none, Err(io::ErrorKind::WouldBlock)));
}

#[test]
fn a_server_responds_504_at_the_deadline() {
    let runtime = runtime();
    let service = service_fn(|_| future::pending::<Served>());
    let layer = ServerLayer::new(DeadlineHeader::Envoy);
    let address = serve(&runtime, &layer, service);
    for head in [
        "x-envoy-expected-rq-timeout-ms: 0\r\n",
        "X-Envoy-Expected-Rq-Timeout-Ms: 100\r\n",
    ] {
        let response = response_to(address, head);
        assert!(response.starts_with("HTTP/1.1 504 "), "{head}: {response}");
    }
}

/// A service that returns the remaining time in nanoseconds.
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
fn a_server_decodes_every_valid_header() {
    let runtime = runtime();
    for (header, lines) in [
        (
            DeadlineHeader::Grpc,
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
            DeadlineHeader::Envoy,
            &[
                "x-envoy-expected-rq-timeout-ms: 60000",
                "x-envoy-expected-rq-timeout-ms:   0000000000000000000000060000  ",
                "x-envoy-expected-rq-timeout-ms: 12648960000000",
            ],
        ),
    ] {
        let address = serve(&runtime, &ServerLayer::new(header), left());
        for line in lines {
            let (_, value) = line.split_once(':').expect("a header");
            let (encoded, _) = meaning(value.trim());
            let start = Instant::now();
            let response = response_to(address, format!("{line}\r\n"));
            let most = start.elapsed();
            let (head, body) = response.split_once("\r\n\r\n").expect("a head");
            if head.starts_with("HTTP/1.1 504 ") || values(head, "grpc-status") == ["4"] {
                assert!(most >= encoded, "{line}: {head}");
                continue;
            }
            let left = body.parse().map(Duration::from_nanos);
            let left = left.unwrap_or_else(|_| panic!("{line}: {response}"));
            assert!(
                left <= encoded && left + most >= encoded,
                "{line}: {left:?}"
            );
        }
    }
}

/// A malformed header never makes a request one without a deadline.
// Fails if a malformed header counts as none.
#[test]
fn a_server_refuses_malformed_headers() {
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
        (DeadlineHeader::Grpc, "5S", &grpc[..]),
        (DeadlineHeader::Envoy, "5000", &envoy),
    ] {
        let is_grpc = header == DeadlineHeader::Grpc;
        let reached = Gate::new();
        let gate = reached.clone();
        let service = service_fn(move |_| {
            gate.open();
            future::ready(Served::Ok(text("")))
        });
        let name = name(&header).to_string();
        let address = serve(&runtime, &ServerLayer::new(header), service);
        let line = |value: &[u8]| [name.as_bytes(), b": ", value, b"\r\n"].concat();
        let twice = [line(good.as_bytes()), line(good.as_bytes())].concat();
        for lines in bad.iter().map(|bad| line(bad)).chain([twice]) {
            let response = response_to(address, &lines);
            let lines = String::from_utf8_lossy(&lines);
            if is_grpc {
                let status = values(&response, "grpc-status");
                assert_eq!(status, ["13"], "{lines}: {response}");
            } else {
                assert!(response.starts_with("HTTP/1.1 400 "), "{lines}: {response}");
            }
            assert!(!reached.is_open(), "{lines}");
        }
        response_to(address, line(good.as_bytes()));
        assert!(reached.is_open());
    }
}

#[test]
fn an_http_client_that_disconnects_stops_the_operation() {
    #[timeout(name = "work", secs = 600, run = "worker")]
    async fn work(started: Gate, encoded: Sender<Option<Cause>>) -> Result<(), TimeoutError> {
        started.open();
        cancel_token.cancelled().await;
        let _ = encoded.send(cancel_token.cause());
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
    let layer = ServerLayer::new(DeadlineHeader::Envoy);
    let address = serve(&runtime, &layer, service);
    let client = raw(address, "x-envoy-expected-rq-timeout-ms: 600000\r\n");
    started.wait();
    drop(client);
    assert_eq!(causes.recv_timeout(SOON), Ok(Some(Cause::Cancelled)));
}
