//! Deadlines between a client and a server of tonic's.

mod support;

use std::convert::Infallible;
use std::error::Error;
use std::future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::channel;
use std::time::Duration;

use bytes::{Buf, BufMut};
use http::uri::PathAndQuery;
use support::{Gate, SHORT, SOON, runtime};
use timeout_runtime::integrations::tower::{ClientError, ClientLayer, DeadlineHeader, ServerLayer};
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline};
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Code, Request, Response, Status};
use tower::{Layer, service_fn};

const FAR: Duration = Duration::from_secs(600);

/// Messages of eight bytes: a number.
#[derive(Clone, Copy, Default)]
struct Numbers;

impl Codec for Numbers {
    type Encode = u64;
    type Decode = u64;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Numbers {
    type Item = u64;
    type Error = Status;

    fn encode(&mut self, number: u64, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_u64(number);
        Ok(())
    }
}

impl Decoder for Numbers {
    type Item = u64;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<u64>, Status> {
        Ok(Some(from.get_u64()))
    }
}

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
    let layer = ServerLayer::grpc().at_most(at_most);
    let server = Server::builder().layer(layer);
    runtime.spawn(server.serve_with_incoming(service, incoming));
    address
}

/// Asks the server at `address` for a number, with what is left in this context.
async fn ask(address: SocketAddr) -> Result<u64, Status> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("a URI");
    let channel = ClientLayer::new(DeadlineHeader::grpc()).layer(endpoint.connect_lazy());
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.expect("it is ready");
    let path = PathAndQuery::from_static("/numbers.Numbers/Ask");
    let answer = client.unary(Request::new(0), path, Numbers).await;
    answer.map(Response::into_inner)
}

fn within(limit: Duration) -> CallContext {
    CallContext::current().with_deadline(Deadline::after(limit))
}

#[test]
fn a_server_sees_what_is_left() {
    let runtime = runtime();
    let address = serve(&runtime, Duration::MAX, async |_| {
        let left = Deadline::current().remaining();
        let millis = left.map_or(0, |left| left.as_millis());
        Ok(Response::new(u64::try_from(millis).expect("not so long")))
    });
    let left = runtime.block_on(within(FAR).scope(ask(address))).unwrap();
    assert!((300_000..600_000).contains(&left), "{left}");
    let none = runtime.block_on(ask(address)).unwrap();
    assert_eq!(none, 0);
}

#[test]
fn a_server_answers_deadline_exceeded_when_time_is_up() {
    let runtime = runtime();
    let short = Duration::from_millis(SHORT);
    let address = serve(&runtime, short, async |_| future::pending().await);
    let status = runtime
        .block_on(within(FAR).scope(ask(address)))
        .unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(status.message(), "the deadline of the request has passed");
}

#[test]
fn what_comes_too_late_is_not_sent() {
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
fn an_error_of_the_connection_keeps_its_status() {
    // Nobody listens there any more.
    let address = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let status = runtime().block_on(ask(address)).unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}

#[test]
fn a_client_that_leaves_stops_the_work() {
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
