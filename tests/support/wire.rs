//! Plain HTTP over real connections: services, clients and the bytes that they exchange.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use timeout_runtime::integrations::tower::{ClientLayer, DeadlineHeader, ServerLayer};
use tokio::runtime::Runtime;
use tower::{BoxError, Layer, Service};

use super::support::SOON;

pub type Body = Full<Bytes>;
pub type Served = Result<Response<Body>, Infallible>;

pub fn text(text: impl Into<Bytes>) -> Response<Body> {
    Response::new(Body::new(text.into()))
}

pub fn uri(address: SocketAddr) -> Uri {
    let uri = format!("http://{address}/");
    uri.parse().expect("an address makes a URI")
}

pub fn request(uri: &Uri) -> Request<Body> {
    let request = Request::get(uri).body(Body::default());
    request.expect("a request")
}

/// The name and the value of the header for the remaining time `left`.
pub fn written(header: &DeadlineHeader, left: Duration) -> (HeaderName, HeaderValue) {
    let mut headers = HeaderMap::new();
    header.write(&mut headers, left);
    let (name, value) = headers.into_iter().next().expect("one header");
    (name.expect("the first value has a name"), value)
}

pub fn name(header: &DeadlineHeader) -> HeaderName {
    written(header, Duration::ZERO).0
}

/// A hyper client that sends the remaining time.
pub fn client(
    header: DeadlineHeader,
) -> impl Service<Request<Body>, Response = Response<Incoming>, Error: Into<BoxError>, Future: Send>
+ Clone
+ Send
+ 'static {
    let client = Client::builder(TokioExecutor::new()).build_http();
    ClientLayer::new(header).layer(client)
}

/// Serves `service` inside `layer` over HTTP/1.1 for as long as `runtime` lives.
pub fn serve<S, B>(runtime: &Runtime, layer: &ServerLayer, service: S) -> SocketAddr
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: hyper::body::Body<Data: Send, Error: Into<BoxError>> + Default + Send + 'static,
{
    let service = layer.layer(service);
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listener = runtime.block_on(listener).expect("a port");
    let address = listener.local_addr().expect("it has an address");
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let service = TowerToHyperService::new(service.clone());
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    address
}

/// Sends a request with these lines in its head, unchanged.
pub fn raw(address: SocketAddr, lines: impl AsRef<[u8]>) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let first = b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n";
    let request = [first, lines.as_ref(), b"\r\n"].concat();
    stream.write_all(&request).expect("it is sent");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    stream
}

/// The whole response to such a request.
pub fn response_to(address: SocketAddr, lines: impl AsRef<[u8]>) -> String {
    let mut response = String::new();
    let mut stream = raw(address, lines);
    stream.read_to_string(&mut response).expect("a response");
    response
}

/// A response without a body.
pub const EMPTY: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// The next connection to `listener` and the head of its first request, as received.
pub fn received(listener: &TcpListener) -> io::Result<(TcpStream, String)> {
    let (mut stream, _) = listener.accept()?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok((stream, String::from_utf8(head).expect("a head is ASCII")))
}

/// The values of the header `name` in `head`.
pub fn values<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let named = lines.filter(|(header, _)| header.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value).collect()
}

/// The duration that a header's value stands for, and its unit, by an independent parser. A value
/// without a letter is in milliseconds.
#[track_caller]
pub fn meaning(value: &str) -> (Duration, Duration) {
    let nanos = match value.as_bytes().last() {
        Some(b'H') => 3_600_000_000_000,
        Some(b'M') => 60_000_000_000,
        Some(b'S') => 1_000_000_000,
        Some(b'u') => 1_000,
        Some(b'n') => 1,
        _ => 1_000_000,
    };
    let digits = value.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    assert!(value.len() - digits.len() <= 1, "{value}");
    assert!(
        digits.bytes().all(|digit| digit.is_ascii_digit()),
        "{value}"
    );
    let number: u64 = digits.parse().expect("a number");
    let unit = Duration::from_nanos(nanos);
    (Duration::from_nanos(number * nanos), unit)
}
