//! Deadlines between tonic clients and servers, and between tonic and peers that do not use it.

use crate::{grpc_service, support, wire};
use std::convert::Infallible;
use std::error::Error;
use std::future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use grpc_service::{Numbers, PATH, ask, channel_to, send};
use http::HeaderMap;
use http::uri::PathAndQuery;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::{Gate, SOON, record, runtime, short, short_limit};
use timeout_runtime::integrations::tower::{ClientError, DeadlineHeader, ServerLayer};
use timeout_runtime::{
    CallContext, CancelToken, Cause, Deadline, EventKind, TimeoutError, timeout,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};
use tower::service_fn;
use wire::meaning;

const FAR: Duration = Duration::from_secs(600);

/// Serves `handler` inside `layer` for as long as `runtime` lives.
fn serve<F, Fut>(runtime: &Runtime, at_most: Duration, handler: F) -> SocketAddr
where
    F: Fn(Request<u64>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<u64>, Status>> + Send + 'static,
{
    let _inside = runtime.enter();
    let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let address = incoming.local_addr().expect("it has an address");
    let service = service_fn(move |request: http::Request<Body>| {
        let handler = service_fn(handler.clone());
        async move {
            let mut server = tonic::server::Grpc::new(Numbers);
            Ok::<_, Infallible>(server.unary(handler, request).await)
        }
    });
    let layer = ServerLayer::new(DeadlineHeader::Grpc).at_most(at_most);
    let server = Server::builder().layer(layer);
    runtime.spawn(server.serve_with_incoming(service, incoming));
    address
}

/// Calls the server from a tonic client with tonic's own request timeout.
async fn ask_within(address: SocketAddr, timeout: Duration) -> Result<u64, Status> {
    let mut client = tonic::client::Grpc::new(channel_to(address));
    client.ready().await.expect("the client is ready");
    let mut request = Request::new(0);
    request.set_timeout(timeout);
    let response = client.unary(request, PathAndQuery::from_static(PATH), Numbers);
    response.await.map(Response::into_inner)
}

/// The response head for an HTTP/2 request with these `grpc-timeout` values. The client sets no
/// timeout of its own.
async fn response_to(address: SocketAddr, values: &[&[u8]]) -> http::response::Parts {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let stream = TokioIo::new(stream);
    let connected = http2::handshake(TokioExecutor::new(), stream).await;
    let (mut client, connection) = connected.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    let mut request = http::Request::post(format!("http://{address}{PATH}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for value in values {
        request = request.header("grpc-timeout", *value);
    }
    // A message: not compressed, eight bytes long.
    let message = Bytes::from_static(&[0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    let request = request.body(Full::new(message)).expect("a request");
    let response = client.send_request(request).await.expect("a response");
    response.into_parts().0
}

/// An HTTP/2 server without tonic and without our layers; it forwards the headers of each request.
fn bare(runtime: &Runtime) -> (SocketAddr, Receiver<HeaderMap>) {
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("it has an address");
    let (sender, headers) = channel();
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let sender = sender.clone();
            let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
                let _ = sender.send(request.into_parts().0.headers);
                let response = http::Response::builder()
                    .header("content-type", "application/grpc")
                    .header("grpc-status", "5");
                future::ready(response.body(Full::<Bytes>::default()))
            });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, headers)
}

/// The single value of `grpc-timeout`, as received.
#[track_caller]
fn only(headers: &HeaderMap) -> &str {
    let values: Vec<_> = headers.get_all("grpc-timeout").iter().collect();
    assert_eq!(values.len(), 1, "{values:?}");
    values[0].to_str().expect("ASCII")
}

/// Returns the remaining time in milliseconds; zero means no deadline.
async fn left(_: Request<u64>) -> Result<Response<u64>, Status> {
    let left = Deadline::current().remaining();
    let millis = left.map_or(0, |left| left.as_millis());
    Ok(Response::new(u64::try_from(millis).expect("not so long")))
}

fn within(limit: Duration) -> CallContext {
    CallContext::current().with_deadline(Deadline::after(limit))
}

#[test]
fn a_server_receives_the_remaining_time() {
    let runtime = runtime();
    let address = serve(&runtime, Duration::MAX, left);
    let left = runtime.block_on(within(FAR).scope(ask(address))).unwrap();
    assert!((300_000..600_000).contains(&left), "{left}");
    let none = runtime.block_on(ask(address)).unwrap();
    assert_eq!(none, 0);
}

/// One deadline for each gRPC unit except the finest, which reaches a tenth of a second only.
const IN_EACH_UNIT: [(char, Duration); 5] = [
    ('u', Duration::from_secs(60)),
    ('m', Duration::from_secs(3600)),
    ('S', Duration::from_secs(40 * 3600)),
    ('M', Duration::from_secs(4 * 365 * 86_400)),
    ('H', Duration::from_secs(300 * 365 * 86_400)),
];

#[test]
fn a_server_without_the_layer_receives_the_header() {
    let runtime = runtime();
    let (address, headers) = bare(&runtime);
    for (letter, limit) in IN_EACH_UNIT {
        let deadline = Deadline::after(limit);
        let context = CallContext::detached().with_deadline(deadline);
        let status = runtime.block_on(context.scope(ask(address))).unwrap_err();
        assert_eq!(status.code(), Code::NotFound, "the server's status");
        let left = deadline.remaining().expect("the deadline is ahead");
        let headers = headers.recv_timeout(SOON).expect("a request");
        let value = only(&headers);
        assert!(value.ends_with(letter), "{value}");
        let (encoded, unit) = meaning(value);
        assert!(
            left <= encoded && encoded < limit + unit,
            "{value}: {left:?}"
        );
    }
    let status = runtime.block_on(ask(address)).unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let headers = headers.recv_timeout(SOON).expect("a request");
    assert_eq!(headers.get("grpc-timeout"), None);
}

/// Tonic enforces this timeout at both ends, without our layer at the server.
#[test]
fn a_tonic_server_without_the_layer_enforces_the_header() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let address = incoming.local_addr().expect("it has an address");
    let (sender, values) = channel();
    let service = service_fn(move |request: http::Request<Body>| {
        let _ = sender.send(only(request.headers()).to_owned());
        future::pending::<Result<http::Response<Body>, Infallible>>()
    });
    runtime.spawn(Server::builder().serve_with_incoming(service, incoming));
    let limit = Duration::from_millis(3 * short());
    let start = Instant::now();
    let status = runtime
        .block_on(within(limit).scope(ask(address)))
        .unwrap_err();
    assert!(start.elapsed() >= limit);
    assert_eq!(status.message(), "Timeout expired");
    let (encoded, _) = meaning(&values.recv_timeout(SOON).expect("a request"));
    assert!(encoded <= limit);
}

#[test]
fn a_tonic_client_timeout_becomes_the_servers_deadline() {
    let runtime = runtime();
    let address = serve(&runtime, Duration::MAX, left);
    for (_, timeout) in IN_EACH_UNIT {
        let left = runtime.block_on(ask_within(address, timeout)).unwrap();
        let left = Duration::from_millis(left);
        assert!(timeout / 2 < left && left <= timeout, "{left:?}");
    }
}

// Fails if the layer adds a second header.
#[test]
fn a_tonic_request_timeout_is_kept_if_it_is_shorter() {
    let runtime = runtime();
    let (address, headers) = bare(&runtime);
    for (timeout, kept) in [(FAR / 2, Some("300000m")), (FAR * 2, None)] {
        let mut request = Request::new(0);
        request.set_timeout(timeout);
        let asked = within(FAR).scope(send(address, request));
        let status = runtime.block_on(asked).unwrap_err();
        assert_eq!(status.code(), Code::NotFound);
        let headers = headers.recv_timeout(SOON).expect("a request");
        let value = only(&headers);
        assert!(meaning(value).0 <= FAR, "{value}");
        assert!(kept.is_none_or(|kept| kept == value), "{value}");
    }
}

#[test]
fn a_tonic_requests_context_replaces_the_current_one() {
    let runtime = runtime();
    let (address, headers) = bare(&runtime);
    let mut request = Request::new(0);
    request.extensions_mut().insert(within(FAR / 2));
    let asked = within(FAR).scope(send(address, request));
    let status = runtime.block_on(asked).unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let headers = headers.recv_timeout(SOON).expect("a request");
    let (encoded, _) = meaning(only(&headers));
    assert!(encoded <= FAR / 2, "{encoded:?}");
}

/// Tonic has its own timeout for the same header; it used to drop the request and report
/// `Cancelled`.
// Fails if the deadline of the layer is later than that of tonic.
#[test]
fn the_layer_reports_deadline_exceeded_before_tonic_does() {
    #[timeout(name = "grpc::work", secs = 600)]
    async fn work() -> Result<(), TimeoutError> {
        future::pending().await
    }

    let works = record("grpc::work");
    let runtime = runtime();
    let address = serve(&runtime, FAR, async |_| {
        tokio::spawn(CallContext::current().scope(work()));
        future::pending().await
    });
    for count in 1..=10 {
        let value = format!("{}u", 100_000 + count * 997);
        let head = runtime.block_on(response_to(address, &[value.as_bytes()]));
        assert_eq!(head.headers["grpc-status"], "4", "{head:?}");
        let encoded = "the deadline of the request has passed";
        assert_eq!(head.headers["grpc-message"], encoded);
        let kinds = works.wait_for(count);
        let last = kinds.last().expect("an event was emitted");
        assert!(
            matches!(last, EventKind::DeadlineExceeded { .. }),
            "{last:?}"
        );
    }
    assert_eq!(works.events().len(), 10);
}

/// Tonic ignores such a header.
// Fails if a malformed header counts as none.
#[test]
fn a_server_refuses_a_malformed_grpc_timeout() {
    let runtime = runtime();
    let reached = Gate::new();
    let seen = reached.clone();
    let address = serve(&runtime, FAR, move |_| {
        seen.open();
        future::ready(Ok(Response::new(0)))
    });
    let bad: [&[&[u8]]; 13] = [
        &[b""],
        &[b"5"],
        &[b"S"],
        &[b"5s"],
        &[b"-5S"],
        &[b"+5S"],
        &[b"5 S"],
        &[b"123456789n"],
        &[b"000000005S"],
        &[b"99999999H"],
        &[b"5\xb5"],
        &[b"\xd9\xa5S"],
        &[b"5S", b"5S"],
    ];
    for values in bad {
        let head = runtime.block_on(response_to(address, values));
        assert_eq!(head.status, 200);
        assert_eq!(head.headers["grpc-status"], "13", "{values:?}: {head:?}");
        assert!(!reached.is_open(), "{values:?}");
    }
    let head = runtime.block_on(response_to(address, &[b"5M"]));
    assert_eq!(head.headers.get("grpc-status"), None, "{head:?}");
    assert!(reached.is_open());
}

#[test]
fn a_server_responds_deadline_exceeded_at_the_deadline() {
    let runtime = runtime();
    let short = short_limit();
    let address = serve(&runtime, short, async |_| future::pending().await);
    let status = runtime
        .block_on(within(FAR).scope(ask(address)))
        .unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(status.message(), "the deadline of the request has passed");
}

#[test]
fn an_expired_grpc_request_is_not_sent() {
    let runtime = runtime();
    let asked = Gate::new();
    let seen = asked.clone();
    let address = serve(&runtime, FAR, move |_| {
        seen.open();
        future::ready(Ok(Response::new(0)))
    });
    let late = within(Duration::ZERO).scope(ask(address));
    let status = runtime.block_on(late).unwrap_err();
    let error = status.source().expect("the layer's error");
    let error = error.downcast_ref::<ClientError<tonic::transport::Error>>();
    assert!(matches!(
        error,
        Some(ClientError::NotSent(Cause::DeadlineExceeded))
    ));
    assert!(!asked.is_open());
}

#[test]
fn a_connection_error_keeps_its_status() {
    // No server listens at this address any more.
    let address = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let status = runtime().block_on(ask(address)).unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}

#[test]
fn a_grpc_client_that_disconnects_stops_the_operation() {
    let runtime = runtime();
    let (sender, causes) = channel();
    let started = Gate::new();
    let gate = started.clone();
    let address = serve(&runtime, FAR, move |_| {
        let (sender, gate) = (sender.clone(), gate.clone());
        tokio::spawn(CallContext::current().scope(async move {
            let token = CancelToken::current();
            gate.open();
            token.cancelled().await;
            let _ = sender.send(token.cause());
        }));
        future::pending()
    });
    let asked = runtime.spawn(ask(address));
    started.wait();
    asked.abort();
    assert_eq!(causes.recv_timeout(SOON), Ok(Some(Cause::Cancelled)));
}
