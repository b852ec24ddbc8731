//! Deadlines over real connections: what the socket sees, and what happens at the far end.

mod support;

use std::convert::Infallible;
use std::future;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use http::{HeaderName, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use support::{Gate, SOON, runtime};
use timeout_runtime::integrations::tower::{ClientError, ClientLayer, DeadlineHeader, ServerLayer};
use timeout_runtime::{CallContext, Cause, Deadline, TimeoutError, timeout};
use tokio::runtime::Runtime;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

type Body = Full<Bytes>;
type Served = Result<Response<Body>, Infallible>;

const FAR: Duration = Duration::from_secs(600);

fn text(text: impl Into<Bytes>) -> Response<Body> {
    Response::new(Body::new(text.into()))
}

fn uri(address: SocketAddr) -> Uri {
    let uri = format!("http://{address}/");
    uri.parse().expect("an address makes a URI")
}

fn request(uri: &Uri) -> Request<Body> {
    let request = Request::get(uri).body(Body::default());
    request.expect("a request")
}

/// A client of hyper's that tells what is left.
fn client(
    header: DeadlineHeader,
) -> impl Service<Request<Body>, Response = Response<Incoming>, Error: Into<BoxError>, Future: Send>
+ Clone
+ Send
+ 'static {
    let client = Client::builder(TokioExecutor::new()).build_http();
    ClientLayer::new(header).layer(client)
}

/// Serves `service` inside `layer` over HTTP/1.1 for as long as `runtime` lives.
fn serve<S>(runtime: &Runtime, header: DeadlineHeader, service: S) -> SocketAddr
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
{
    let service = ServerLayer::http(header).layer(service);
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

/// Sends `head` as it is.
fn raw(address: SocketAddr, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let request = format!("GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{head}\r\n");
    stream.write_all(request.as_bytes()).expect("it is sent");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    stream
}

/// What comes back for `head`.
fn answered(address: SocketAddr, head: &str) -> String {
    let mut answer = String::new();
    let mut stream = raw(address, head);
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// The head of the one request that comes to `listener`, as it is on the wire.
fn received(listener: &TcpListener) -> io::Result<String> {
    let (mut stream, _) = listener.accept()?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
    Ok(String::from_utf8(head).expect("a head is ASCII"))
}

/// The values of the header `name` in `head`.
fn values<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let named = lines.filter(|(header, _)| header.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value).collect()
}

#[test]
fn the_socket_sees_what_is_left() {
    let own = HeaderName::from_static("x-time-left");
    for (header, unit) in [
        (DeadlineHeader::grpc(), "m"),
        (DeadlineHeader::envoy(), ""),
        (DeadlineHeader::millis(own), ""),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let uri = uri(listener.local_addr().expect("it has an address"));
        let name = header.name().clone();
        let runtime = runtime();
        let asked = runtime.spawn(async move {
            let context = CallContext::current().with_deadline(Deadline::after(FAR));
            let asked = client(header).oneshot(request(&uri));
            context.scope(asked).await.map_err(Into::into)
        });
        let head = received(&listener).expect("a request");
        let answer: Result<_, BoxError> = runtime.block_on(asked).expect("no panic");
        assert!(answer.expect("an answer").status().is_success());

        let told = values(&head, name.as_str());
        assert_eq!(told.len(), 1, "{head}");
        let digits = told[0].strip_suffix(unit).expect("the unit");
        assert!(digits.bytes().all(|byte| byte.is_ascii_digit()), "{head}");
        let millis: u64 = digits.parse().expect("a number");
        assert!((300_000..=600_000).contains(&millis), "{head}");
    }
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
    assert_eq!(none, Err(io::ErrorKind::WouldBlock));
}

#[test]
fn a_server_answers_when_time_is_up() {
    let runtime = runtime();
    let service = service_fn(|_| future::pending::<Served>());
    let address = serve(&runtime, DeadlineHeader::envoy(), service);
    for (head, status) in [
        ("x-envoy-expected-rq-timeout-ms: 0\r\n", "504 "),
        ("X-Envoy-Expected-Rq-Timeout-Ms: 100\r\n", "504 "),
        ("x-envoy-expected-rq-timeout-ms: -1\r\n", "400 "),
        ("x-envoy-expected-rq-timeout-ms: \u{e9}\r\n", "400 "),
        (
            "x-envoy-expected-rq-timeout-ms: 1\r\nx-envoy-expected-rq-timeout-ms: 1\r\n",
            "400 ",
        ),
    ] {
        let answer = answered(address, head);
        let answer = answer.strip_prefix("HTTP/1.1 ").expect("an answer");
        assert!(answer.starts_with(status), "{head}: {answer}");
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
    let address = serve(&runtime, DeadlineHeader::envoy(), service);
    let client = raw(address, "x-envoy-expected-rq-timeout-ms: 600000\r\n");
    started.wait();
    drop(client);
    assert_eq!(causes.recv_timeout(SOON), Ok(Some(Cause::Cancelled)));
}

#[test]
fn what_is_left_does_not_grow_over_three_hops() {
    /// What the header of `request` tells, in nanoseconds. It was rounded up, so a little less may be left.
    fn told(request: &Request<Incoming>) -> String {
        let told = DeadlineHeader::grpc().read(request.headers());
        let told = told.expect("it can be read").expect("it is there");
        assert!(Deadline::current().remaining() <= Some(told));
        told.as_nanos().to_string()
    }

    let runtime = runtime();
    let header = DeadlineHeader::grpc;
    let last = service_fn(|asked| future::ready(Served::Ok(text(told(&asked)))));
    let mut address = serve(&runtime, header(), last);
    for _ in 0..2 {
        let (client, next) = (client(header()), uri(address));
        let hop = service_fn(move |asked| {
            let (client, before) = (client.clone(), told(&asked));
            let asked = request(&next);
            async move {
                let answer = client.oneshot(asked).await.map_err(Into::into);
                let answer = answer.unwrap_or_else(|error: BoxError| panic!("{error}"));
                let after = answer.into_body().collect().await.expect("a body");
                let after = String::from_utf8(after.to_bytes().to_vec()).expect("digits");
                Served::Ok(text(format!("{before} {after}")))
            }
        });
        address = serve(&runtime, header(), hop);
    }
    let answer = answered(address, "grpc-timeout: 10M\r\n");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let told: Vec<u128> = body.split(' ').map(|told| told.parse().unwrap()).collect();
    assert_eq!(told.len(), 3, "{answer}");
    assert!(
        told.is_sorted_by(|before, after| before >= after),
        "{told:?}"
    );
    assert_eq!(told[0], FAR.as_nanos());
    assert!(told[2] > FAR.as_nanos() / 2, "{told:?}");
}
