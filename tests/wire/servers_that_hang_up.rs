//! A server that breaks off, or says nothing more, anywhere in its answer: its client gets an error of the connection, or its own timeout, and one
//! event.

use crate::{numbers, support, wire};
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
use support::{limit, record, runtime, short, short_limit};
use timeout_runtime::integrations::tower::{ClientError, DeadlineHeader};
use timeout_runtime::{EventKind, TimeoutError};
use tonic::Status;
use tower::{BoxError, ServiceExt};
use wire::{client, received, request, uri, values};

const LONG: u64 = 60_000;

type Broken = ClientError<hyper_util::client::legacy::Error>;

/// What a server sends before it is at its end.
const PARTS: [&str; 6] = [
    "",
    "HTTP/1.1 20",
    "HTTP/1.1 200 OK\r\ncontent-le",
    "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhel",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
];

/// The body of the answer; the limit is around all of it.
async fn ask(name: &'static str, uri: Uri, patience: u64) -> Result<Bytes, BoxError> {
    let asked = limit(name, patience).call_async(async |_| -> Result<_, BoxError> {
        let answer = client(DeadlineHeader::envoy()).oneshot(request(&uri));
        let answer = answer.await.map_err(Into::into)?;
        Ok(answer.into_body().collect().await?.to_bytes())
    });
    asked.await
}

/// What a client gets, by a call of this name, from a server that does this.
fn asked(
    name: &'static str,
    patience: u64,
    server: impl FnOnce(&TcpListener),
) -> Result<Bytes, BoxError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let uri = uri(listener.local_addr().expect("it has an address"));
    let runtime = runtime();
    let asked = runtime.spawn(ask(name, uri, patience));
    server(&listener);
    runtime.block_on(asked).expect("no panic")
}

/// Reads a request to `listener`, and sends `part`.
fn send(listener: &TcpListener, part: &str) -> TcpStream {
    let (mut stream, head) = received(listener).expect("a request");
    let told = values(&head, DeadlineHeader::envoy().name().as_str());
    assert_eq!(told.len(), 1, "{head}");
    stream.write_all(part.as_bytes()).expect("it is sent");
    stream
}

/// What came before is no answer.
#[test]
fn a_client_gets_the_error_of_a_connection_that_breaks_off() {
    for part in PARTS {
        let events = record("broken::off");
        let server = |listener: &TcpListener| drop(send(listener, part));
        let error = asked("broken::off", LONG, server).unwrap_err();
        if part.contains("\r\n\r\n") {
            assert!(error.is::<hyper::Error>(), "{part:?}: {error:?}");
        } else {
            let error = error.downcast::<Broken>().expect("it is the layer's");
            assert!(matches!(*error, ClientError::Service(_)), "{part:?}");
            assert!(error.source().is_some(), "{part:?}");
        }
        let kinds = events.kinds();
        assert!(matches!(kinds[..], [EventKind::Failed(_)]), "{kinds:?}");
    }
}

#[test]
fn a_client_gets_the_error_of_a_connection_that_is_reset() {
    let events = record("broken::reset");
    let error = asked("broken::reset", LONG, |listener| {
        let (stream, _) = listener.accept().expect("a connection");
        // Closed with something unread.
        stream.peek(&mut [0]).expect("a request");
    });
    let error = error.unwrap_err().downcast::<Broken>();
    let error = error.expect("it is the layer's");
    assert!(matches!(*error, ClientError::Service(_)), "{error:?}");
    let kinds = events.kinds();
    assert!(matches!(kinds[..], [EventKind::Failed(_)]), "{kinds:?}");
}

/// The limit of the call around holds for the body as well.
#[test]
fn a_client_times_out_where_nothing_more_comes() {
    for part in PARTS {
        let events = record("broken::silent");
        let start = Instant::now();
        let error = asked("broken::silent", short(), |listener| {
            // Until the client goes away.
            let _ = send(listener, part).read(&mut [0]);
        });
        assert!(start.elapsed() >= short_limit());
        let error = error.unwrap_err().downcast::<TimeoutError>();
        let error = error.expect("it is ours");
        assert!(error.is_timed_out(), "{part:?}: {error}");
        assert_eq!(events.kinds(), [EventKind::TimedOut], "{part:?}");
    }
}

/// How the answer of a server goes on after a part of it.
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

/// What a client of ours gets, by a call of this name, from a server over HTTP/2 that answers with this body.
fn answered_by(
    name: &'static str,
    patience: u64,
    body: impl Fn() -> StreamBody<Frames> + Send + 'static,
) -> Result<u64, BoxError> {
    let runtime = runtime();
    let listener = runtime.block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("it has an address");
    runtime.spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let service = hyper::service::service_fn(move |_| {
            let answer = http::Response::builder().header("content-type", "application/grpc");
            future::ready(answer.body(body()))
        });
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let connection = connection.serve_connection(TokioIo::new(stream), service);
        connection.await
    });
    let asked = limit(name, patience).call_async(async move |_| Ok(numbers::ask(address).await?));
    runtime.block_on(asked)
}

/// Nothing, half of what comes before a message, half a message, and a message without a status behind it.
const MESSAGES: [&[u8]; 4] = [
    &[],
    &[0, 0],
    &[0, 0, 0, 0, 8, 0, 0],
    &[0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7],
];

#[test]
fn a_client_of_grpc_gets_a_status_where_its_server_breaks_off() {
    for part in MESSAGES {
        for then in [Then::Ends, Then::Breaks] {
            let events = record("grpc::broken");
            let answer = answered_by("grpc::broken", LONG, move || body(part, then));
            let error = answer.unwrap_err();
            assert!(error.is::<Status>(), "{part:?}, {then:?}: {error:?}");
            let kinds = events.kinds();
            assert!(matches!(kinds[..], [EventKind::Failed(_)]), "{kinds:?}");
        }
    }
}

/// Tonic keeps a timeout up to the head of an answer only; the limit of the call around holds for all of it.
#[test]
fn a_client_of_grpc_times_out_where_nothing_more_comes() {
    for part in MESSAGES {
        let events = record("grpc::silent");
        let answer = answered_by("grpc::silent", short(), move || body(part, Then::Waits));
        let error = answer.unwrap_err().downcast::<TimeoutError>();
        assert!(error.expect("it is ours").is_timed_out(), "{part:?}");
        assert_eq!(events.kinds(), [EventKind::TimedOut], "{part:?}");
    }
}
