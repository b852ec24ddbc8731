//! A server that breaks off or stalls within its response: the client gets a connection error or
//! its own timeout, and its call emits one event.

use crate::{grpc_service, support, wire};
use std::error::Error;
use std::future;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::pin::Pin;
use std::time::Instant;

use futures::stream::{self, Stream, StreamExt};
use http::Uri;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::{LONG, limit, record, runtime, short, short_limit};
use timeout_runtime::integrations::tower::{ClientError, DeadlineHeader};
use timeout_runtime::{EventKind, TimeoutError};
use tonic::Status;
use tower::{BoxError, ServiceExt};
use wire::{client, received, request, uri, values};

type Broken = ClientError<hyper_util::client::legacy::Error>;

/// The bytes that a server sends before it breaks off or stalls.
const PARTS: [&str; 6] = [
    "",
    "HTTP/1.1 20",
    "HTTP/1.1 200 OK\r\ncontent-le",
    "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhel",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
];

/// The body of the response; the limit covers all of it.
async fn ask(name: &'static str, uri: Uri, millis: u64) -> Result<Bytes, BoxError> {
    let asked = limit(name, millis).call_async(async |_| -> Result<_, BoxError> {
        let response = client(DeadlineHeader::Envoy).oneshot(request(&uri));
        let response = response.await.map_err(Into::into)?;
        Ok(response.into_body().collect().await?.to_bytes())
    });
    asked.await
}

/// The client's result, from a call of this name, where `server` handles the connection.
fn asked(
    name: &'static str,
    millis: u64,
    server: impl FnOnce(&TcpListener),
) -> Result<Bytes, BoxError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let uri = uri(listener.local_addr().expect("it has an address"));
    let runtime = runtime();
    let asked = runtime.spawn(ask(name, uri, millis));
    server(&listener);
    runtime.block_on(asked).expect("no panic")
}

/// Reads a request from `listener`, and sends `part`.
fn send(listener: &TcpListener, part: &str) -> TcpStream {
    let (mut stream, head) = received(listener).expect("a request");
    let encoded = values(&head, "x-envoy-expected-rq-timeout-ms");
    assert_eq!(encoded.len(), 1, "{head}");
    stream.write_all(part.as_bytes()).expect("it is sent");
    stream
}

/// The part received so far is not returned as a response.
// Fails if every error counts as a request that was not sent.
#[test]
fn a_broken_connection_is_an_error_of_the_client() {
    for part in PARTS {
        let events = record("broken::off");
        let server = |listener: &TcpListener| drop(send(listener, part));
        let error = asked("broken::off", LONG, server).unwrap_err();
        if part.contains("\r\n\r\n") {
            assert!(error.is::<hyper::Error>(), "{part:?}: {error:?}");
        } else {
            let error = error.downcast::<Broken>().expect("the layer's error");
            assert!(matches!(*error, ClientError::Service(_)), "{part:?}");
            assert!(error.source().is_some(), "{part:?}");
        }
        let kinds = events.kinds();
        assert!(matches!(kinds[..], [EventKind::Failed(_)]), "{kinds:?}");
    }
}

#[test]
fn a_reset_connection_is_an_error_of_the_client() {
    let events = record("broken::reset");
    let error = asked("broken::reset", LONG, |listener| {
        let (stream, _) = listener.accept().expect("a connection");
        // Closed with unread data, so that the connection is reset.
        stream.peek(&mut [0]).expect("a request");
    });
    let error = error.unwrap_err().downcast::<Broken>();
    let error = error.expect("the layer's error");
    assert!(matches!(*error, ClientError::Service(_)), "{error:?}");
    let kinds = events.kinds();
    assert!(matches!(kinds[..], [EventKind::Failed(_)]), "{kinds:?}");
}

/// The enclosing call's limit covers the body too.
#[test]
fn a_client_times_out_when_the_server_stalls() {
    for part in PARTS {
        let events = record("broken::silent");
        let start = Instant::now();
        let error = asked("broken::silent", short(), |listener| {
            // Blocks until the client disconnects.
            let _ = send(listener, part).read(&mut [0]);
        });
        assert!(start.elapsed() >= short_limit());
        let error = error.unwrap_err().downcast::<TimeoutError>();
        let error = error.expect("a TimeoutError");
        assert!(error.is_timed_out(), "{part:?}: {error}");
        assert_eq!(events.kinds(), [EventKind::TimedOut], "{part:?}");
    }
}

/// How the response continues after a part of it.
#[derive(Clone, Copy, Debug)]
enum Then {
    Ends,
    Breaks,
    Waits,
}

type Frames = Pin<Box<dyn Stream<Item = io::Result<Frame<Bytes>>> + Send>>;

fn body(part: &'static [u8], then: Then) -> StreamBody<Frames> {
    let part = stream::iter([Ok(Frame::data(Bytes::from_static(part)))]);
    StreamBody::new(match then {
        Then::Ends => Box::pin(part),
        Then::Breaks => {
            let error = Err(io::ErrorKind::BrokenPipe.into());
            Box::pin(part.chain(stream::iter([error])))
        }
        Then::Waits => Box::pin(part.chain(stream::pending())),
    })
}

/// The client's result, from a call of this name, where an HTTP/2 server sends this body.
fn response_from(
    name: &'static str,
    millis: u64,
    body: impl Fn() -> StreamBody<Frames> + Send + 'static,
) -> Result<u64, BoxError> {
    let runtime = runtime();
    let listener = runtime.block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("it has an address");
    runtime.spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let service = hyper::service::service_fn(move |_| {
            let response = http::Response::builder().header("content-type", "application/grpc");
            future::ready(response.body(body()))
        });
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let connection = connection.serve_connection(TokioIo::new(stream), service);
        connection.await
    });
    let asked =
        limit(name, millis).call_async(async move |_| Ok(grpc_service::ask(address).await?));
    runtime.block_on(asked)
}

/// Nothing, half a message prefix, half a message, and a whole message without a status.
const MESSAGES: [&[u8]; 4] = [
    &[],
    &[0, 0],
    &[0, 0, 0, 0, 8, 0, 0],
    &[0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7],
];

#[test]
fn a_grpc_client_gets_a_status_when_the_server_breaks_off() {
    for part in MESSAGES {
        for then in [Then::Ends, Then::Breaks] {
            let events = record("grpc::broken");
            let response = response_from("grpc::broken", LONG, move || body(part, then));
            let error = response.unwrap_err();
            assert!(error.is::<Status>(), "{part:?}, {then:?}: {error:?}");
            let kinds = events.kinds();
            assert!(matches!(kinds[..], [EventKind::Failed(_)]), "{kinds:?}");
        }
    }
}

/// Tonic's timeout ends with the response head; the enclosing call's limit covers the whole
/// response.
#[test]
fn a_grpc_client_times_out_when_the_server_stalls() {
    for part in MESSAGES {
        let events = record("grpc::silent");
        let response = response_from("grpc::silent", short(), move || body(part, Then::Waits));
        let error = response.unwrap_err().downcast::<TimeoutError>();
        assert!(error.expect("a TimeoutError").is_timed_out(), "{part:?}");
        assert_eq!(events.kinds(), [EventKind::TimedOut], "{part:?}");
    }
}
