//! The deadline of a request covers its whole answer: a stream ends when time is up, and its client's leaving stops the work.

use crate::{numbers, support, wire};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use numbers::{Numbers, PATH, channel_to};
use support::{Drops, SOON, Tracked, runtime, short_limit, until_past};
use timeout_runtime::integrations::tower::{DeadlineHeader, Refusal, ServerBody, ServerLayer};
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline, Registration};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Status};
use tower::{BoxError, Layer, ServiceExt, service_fn};

const FAR: Duration = Duration::from_secs(600);

/// How a stream goes on after its frames.
#[derive(Clone, Copy, Default)]
enum After {
    #[default]
    Nothing,
    Ends,
    Fails,
    /// It is known to be at its end with the last frame.
    EndsWithThat,
    /// The same, and it wants to be polled at once.
    Busy,
    /// It blocks its thread until time is up, and then has another frame.
    Late,
}

/// A body of these frames.
#[derive(Default)]
struct Stream {
    frames: VecDeque<Frame<Bytes>>,
    after: After,
    /// Gets what is left, and the cause that the token has, at each poll.
    seen: Option<Sender<(Option<Duration>, Option<Cause>)>>,
    kept: Option<Tracked>,
    watched: Option<Registration>,
    dropped: Option<Dropped>,
    /// What it says of its size.
    size: Option<u64>,
}

/// Tells what is left when it is dropped.
struct Dropped(Sender<Option<Duration>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(Deadline::current().remaining());
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(seen) = &self.seen {
            let left = Deadline::current().remaining();
            let _ = seen.send((left, CancelToken::current().cause()));
        }
        if let Some(frame) = self.frames.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match self.after {
            After::Nothing => Poll::Pending,
            After::Busy => {
                // So the token goes by the timer.
                let watched = || CancelToken::current().on_cancel(|| {});
                self.watched.get_or_insert_with(watched);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            After::Ends | After::EndsWithThat => Poll::Ready(None),
            After::Fails => Poll::Ready(Some(Err(io::Error::other("the disk is gone")))),
            After::Late => {
                until_past(&CancelToken::current());
                Poll::Ready(Some(Ok(frame("late"))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.after, After::EndsWithThat) && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.size.map_or(SizeHint::default(), SizeHint::with_exact)
    }
}

fn frame(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

fn trailers() -> Frame<Bytes> {
    Frame::trailers(HeaderMap::new())
}

fn stream(frames: impl IntoIterator<Item = Frame<Bytes>>, after: After) -> Stream {
    Stream {
        frames: frames.into_iter().collect(),
        after,
        ..Stream::default()
    }
}

type Answer = fn(Refusal) -> Response<Stream>;
type Streamed = ServerBody<Stream, Answer>;

fn http() -> ServerLayer<Answer> {
    ServerLayer::http(DeadlineHeader::envoy())
}

/// The body of the answer, as `layer` gives it, and the context that its service had.
async fn answer(layer: ServerLayer<Answer>, stream: Stream) -> (Streamed, CallContext) {
    answer_to(Request::new(()), layer, Response::new(stream)).await
}

async fn answer_to(
    request: Request<()>,
    layer: ServerLayer<Answer>,
    answer: Response<Stream>,
) -> (Streamed, CallContext) {
    let mut answer = Some(answer);
    let (sender, contexts) = channel();
    let service = service_fn(move |_| {
        let _ = sender.send(CallContext::current());
        let answer = answer.take().expect("it is called once");
        future::ready(Ok::<_, Infallible>(answer))
    });
    let answer = layer.layer(service).oneshot(request).await;
    let answer = answer.unwrap_or_else(|never| match never {});
    (answer.into_body(), contexts.recv().expect("it is called"))
}

/// A runtime whose time jumps to the next deadline.
fn paused() -> Runtime {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.expect("a runtime")
}

async fn next(body: &mut Streamed) -> Option<Result<Frame<Bytes>, BoxError>> {
    body.frame().await
}

#[track_caller]
fn assert_data(frame: Option<Result<Frame<Bytes>, BoxError>>, data: &str) {
    let frame = frame.expect("a frame").expect("no error");
    assert_eq!(frame.into_data().expect("data"), data);
}

#[track_caller]
fn assert_expired(frame: Option<Result<Frame<Bytes>, BoxError>>) {
    let error = frame.expect("a frame").expect_err("time is up");
    assert_eq!(error.downcast_ref(), Some(&Refusal::Expired));
}

#[test]
fn a_stream_ends_with_an_error_when_time_is_up() {
    paused().block_on(async {
        let start = tokio::time::Instant::now();
        let drops = Drops::default();
        let mut endless = stream([frame("first")], After::Nothing);
        endless.kept = Some(drops.value());
        let (mut body, context) = answer(http().at_most(FAR), endless).await;
        assert_data(next(&mut body).await, "first");
        assert_expired(next(&mut body).await);
        assert!(start.elapsed() >= FAR);
        assert_eq!(drops.count(), 1);
        assert_eq!(context.token().cause(), Some(Cause::DeadlineExceeded));
        assert!(body.is_end_stream() && next(&mut body).await.is_none());
    });
}

/// What follows the first frame of an endless answer of this kind inside `layer` when time is up.
fn follows(layer: ServerLayer<Answer>, kind: &str) -> Result<Frame<Bytes>, BoxError> {
    paused().block_on(async {
        let answer = Response::builder().header("content-type", kind);
        let answer = answer.body(stream([frame("first")], After::Nothing));
        let layer = layer.at_most(FAR);
        let answer = answer.expect("an answer");
        let (mut body, _) = answer_to(Request::new(()), layer, answer).await;
        assert_data(next(&mut body).await, "first");
        let last = next(&mut body).await.expect("a frame");
        assert!(next(&mut body).await.is_none());
        last
    })
}

const PASSED: &str = "the deadline of the request has passed";
const KINDS: [&str; 5] = [
    "application/grpc",
    "application/grpc+proto",
    "application/grpc; charset=utf-8",
    "Application/gRPC",
    "application/GRPC+json",
];

#[track_caller]
fn assert_trailers(last: Result<Frame<Bytes>, BoxError>, status: &str, message: &str) {
    let trailers = last.expect("no error").into_trailers().expect("trailers");
    assert_eq!(trailers.get_all("grpc-status").iter().count(), 1);
    assert_eq!(trailers["grpc-status"], status);
    assert_eq!(trailers["grpc-message"], message);
    assert_eq!(trailers.len(), 2);
}

#[test]
fn a_stream_of_grpc_ends_with_its_status_when_time_is_up() {
    for kind in KINDS {
        assert_trailers(follows(ServerLayer::grpc(), kind), "4", PASSED);
    }
}

/// The trailers were empty, so the part looked like the whole.
#[test]
fn a_stream_of_grpc_ends_with_a_status_also_where_the_refusal_has_none() {
    for kind in KINDS {
        assert_trailers(follows(http(), kind), "4", PASSED);
        let silent: Answer = |_| Response::new(Stream::default());
        let layer = ServerLayer::new(DeadlineHeader::envoy(), silent);
        assert_trailers(follows(layer, kind), "4", PASSED);
    }
}

/// A refusal with these headers.
macro_rules! refusal {
    ($($name:literal: $value:literal),*) => {{
        let answer: Answer = |_| {
            let answer = Response::builder()$(.header($name, $value))*;
            answer.body(Stream::default()).expect("an answer")
        };
        ServerLayer::new(DeadlineHeader::envoy(), answer)
    }};
}

/// `grpc-status: 0` says that the part is the whole, and clients differ in what they make of others.
#[test]
fn a_stream_of_grpc_never_ends_with_a_status_that_is_no_error() {
    let layers = [
        refusal!("grpc-status": ""),
        refusal!("grpc-status": "0"),
        refusal!("grpc-status": "00"),
        refusal!("grpc-status": " 0"),
        refusal!("grpc-status": "+4"),
        refusal!("grpc-status": "17"),
        refusal!("grpc-status": "-1"),
        refusal!("grpc-status": "deadline"),
        refusal!("grpc-status": "\u{664}"),
        refusal!("grpc-status": "0", "grpc-status": "4"),
        refusal!("grpc-status": "4", "grpc-status": "0"),
    ];
    for layer in layers {
        assert_trailers(follows(layer, "application/grpc"), "4", PASSED);
    }
}

#[test]
fn a_stream_of_grpc_ends_with_the_status_of_the_refusal_where_it_has_one() {
    let layer = refusal!("grpc-status": "8", "grpc-message": "too slow", "x-other": "1");
    assert_trailers(follows(layer, "application/grpc"), "8", "too slow");
    let layer = refusal!("grpc-message": "too slow");
    assert_trailers(follows(layer, "application/grpc"), "4", "too slow");
    let layer = refusal!("grpc-status": "16");
    let trailers = follows(layer, "application/grpc").expect("no error");
    let trailers = trailers.into_trailers().expect("trailers");
    assert_eq!(trailers.len(), 1);
    assert_eq!(trailers["grpc-status"], "16");
}

/// The refusal is an answer of its own, and its head is read only.
#[test]
fn a_stream_of_grpc_ends_with_a_status_also_where_the_refusal_has_it_in_its_trailers() {
    let answer: Answer = |_| {
        let status = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
        Response::new(stream([Frame::trailers(status)], After::Nothing))
    };
    let layer = ServerLayer::new(DeadlineHeader::envoy(), answer);
    assert_trailers(follows(layer, "application/grpc"), "4", PASSED);
}

/// Its head promised five bytes, and all of them are out.
#[test]
fn a_whole_length_is_no_status() {
    paused().block_on(async {
        let answer = Response::builder()
            .header("content-type", "application/grpc")
            .header("content-length", "5")
            .body(stream([frame("first")], After::Nothing));
        let answer = answer.expect("an answer");
        let (mut body, _) = answer_to(Request::new(()), http().at_most(FAR), answer).await;
        assert_data(next(&mut body).await, "first");
        let last = next(&mut body).await.expect("a frame");
        assert_trailers(last, "4", PASSED);
    });
}

/// Trailers that no client reads would make the part look whole.
#[test]
fn a_stream_of_another_kind_breaks_off_in_every_layer() {
    for kind in [
        "text/csv",
        "application/grpc-web",
        "application/grpc-web+proto",
        "application/grpc-web-text",
        "Application/GRPC-Web+proto",
        "application/grpcish",
        "application/grp",
        "",
    ] {
        for layer in [http(), ServerLayer::grpc(), refusal!("grpc-status": "8")] {
            let error = follows(layer, kind).expect_err("time is up");
            assert_eq!(error.downcast_ref(), Some(&Refusal::Expired), "{kind}");
        }
    }
}

#[test]
fn a_stream_does_not_begin_when_time_is_up() {
    paused().block_on(async {
        let (sender, seen) = channel();
        let mut endless = stream([frame("first")], After::Nothing);
        endless.seen = Some(sender);
        let (mut body, _) = answer(http().at_most(FAR), endless).await;
        tokio::time::advance(FAR).await;
        assert_expired(next(&mut body).await);
        assert_eq!(seen.try_iter().count(), 0);
    });
}

/// Its head promises five bytes, in a header or by the size of its body.
#[test]
fn an_answer_with_all_that_its_head_promises_is_whole() {
    paused().block_on(async {
        for in_header in [true, false] {
            let mut five = stream([frame("fi"), frame("rst")], After::Nothing);
            let answer = Response::builder();
            let answer = if in_header {
                answer.header("content-length", "5")
            } else {
                five.size = Some(5);
                answer
            };
            let answer = answer.body(five).expect("an answer");
            let (mut body, context) =
                answer_to(Request::new(()), http().at_most(FAR), answer).await;
            assert_data(next(&mut body).await, "fi");
            assert_data(next(&mut body).await, "rst");
            // A server that polls on finds nothing wrong.
            assert!(next(&mut body).await.is_none());
            assert_eq!(context.token().cause(), Some(Cause::DeadlineExceeded));
        }
    });
}

#[test]
fn a_client_that_leaves_with_all_that_was_promised_cancels_nothing() {
    runtime().block_on(async {
        let answer = Response::builder().header("content-length", "5");
        let answer = answer.body(stream([frame("fi"), frame("rst")], After::Nothing));
        let answer = answer.expect("an answer");
        let (mut body, context) = answer_to(Request::new(()), http().at_most(FAR), answer).await;
        assert_data(next(&mut body).await, "fi");
        assert_data(next(&mut body).await, "rst");
        drop(body);
        assert_eq!(context.token().cause(), None);
    });
}

#[test]
fn a_client_that_leaves_with_less_than_was_promised_cancels_all_work() {
    runtime().block_on(async {
        let answer = Response::builder().header("content-length", "6");
        let answer = answer.body(stream([frame("first")], After::Nothing));
        let answer = answer.expect("an answer");
        let (mut body, context) = answer_to(Request::new(()), http().at_most(FAR), answer).await;
        assert_data(next(&mut body).await, "first");
        drop(body);
        assert_eq!(context.token().cause(), Some(Cause::Cancelled));
    });
}

/// The body of an answer that comes too late, too.
#[test]
fn a_body_is_dropped_in_the_context_of_its_request() {
    let (sender, left) = channel();
    let dropped = Dropped(sender);
    let mut dropped = Some(dropped);
    let service = service_fn(move |_| {
        let mut late = stream([], After::Nothing);
        late.dropped = dropped.take();
        async {
            until_past(&CancelToken::current());
            Ok::<_, Infallible>(Response::new(late))
        }
    });
    let layer = http().at_most(short_limit());
    let served = runtime().block_on(layer.layer(service).oneshot(Request::new(())));
    assert_eq!(
        served.map(|served| served.status()),
        Ok(StatusCode::GATEWAY_TIMEOUT)
    );
    assert_eq!(left.try_recv(), Ok(Some(Duration::ZERO)));
}

/// What layers around this one ask of bodies, to make empty ones.
#[test]
fn layers_around_may_make_bodies_of_their_own() {
    let layer: ServerLayer<fn(Refusal) -> Response<Streamed>> = ServerLayer::grpc();
    let service = service_fn(async |_| Ok::<_, Infallible>(Response::new(Stream::default())));
    let service = layer.layer(http().layer(service));
    let request = Request::get("/").header("grpc-timeout", "0n").body(());
    let served = service.oneshot(request.expect("a request"));
    let served = runtime().block_on(served);
    let status = served.map(|served| served.headers()["grpc-status"].clone());
    assert_eq!(status, Ok(HeaderValue::from_static("4")));
}

#[test]
fn a_stream_is_polled_in_the_context_of_its_request_and_once_more_when_time_is_up() {
    paused().block_on(async {
        let (sender, seen) = channel();
        let mut endless = stream([frame("first")], After::Nothing);
        endless.seen = Some(sender);
        let (mut body, _) = answer(http().at_most(FAR), endless).await;
        assert_data(next(&mut body).await, "first");
        assert_expired(next(&mut body).await);
        let mut seen: Vec<_> = seen.try_iter().collect();
        let last = seen.pop().expect("a last poll");
        assert_eq!(last, (Some(Duration::ZERO), Some(Cause::DeadlineExceeded)));
        assert!(seen.len() >= 2, "{seen:?}");
        for (left, cause) in seen {
            assert!(left > Some(Duration::ZERO));
            assert_eq!(cause, None);
        }
    });
}

/// Guards against a last poll before the timer has told anybody, which is a matter of microseconds.
#[test]
fn a_busy_stream_is_told_before_it_is_dropped() {
    for _ in 0..20 {
        let (sender, seen) = channel();
        let mut busy = stream([], After::Busy);
        busy.seen = Some(sender);
        runtime().block_on(async {
            let limit = short_limit() / 4;
            let (mut body, _) = answer(http().at_most(limit), busy).await;
            assert_expired(next(&mut body).await);
        });
        let last = seen.try_iter().last();
        assert_eq!(
            last,
            Some((Some(Duration::ZERO), Some(Cause::DeadlineExceeded)))
        );
    }
}

#[test]
fn a_frame_that_comes_too_late_is_not_passed_on() {
    let late = stream([], After::Late);
    runtime().block_on(async {
        let limit = short_limit();
        let (mut body, context) = answer(http().at_most(limit), late).await;
        assert_expired(next(&mut body).await);
        assert_eq!(context.token().cause(), Some(Cause::DeadlineExceeded));
    });
}

#[test]
fn a_stream_that_its_client_leaves_cancels_all_work() {
    for limit in [FAR, Duration::MAX] {
        runtime().block_on(async {
            let endless = stream([frame("first")], After::Nothing);
            let (mut body, context) = answer(http().at_most(limit), endless).await;
            assert_data(next(&mut body).await, "first");
            assert_eq!(context.token().cause(), None);
            drop(body);
            assert_eq!(context.token().cause(), Some(Cause::Cancelled));
        });
    }
}

#[test]
fn a_stream_that_ends_in_time_cancels_nothing() {
    let endings = [
        (vec![], After::Ends),
        (vec![], After::EndsWithThat),
        (vec![frame("last")], After::Ends),
        (vec![frame("last")], After::EndsWithThat),
        (vec![frame("last"), trailers()], After::Nothing),
    ];
    for (frames, after) in endings {
        runtime().block_on(async {
            let count = frames.len();
            let (mut body, context) = answer(http().at_most(FAR), stream(frames, after)).await;
            for _ in 0..count {
                let frame = next(&mut body).await.expect("a frame");
                frame.expect("no error");
            }
            if let After::Ends = after {
                assert!(next(&mut body).await.is_none());
            }
            drop(body);
            assert_eq!(context.token().cause(), None);
        });
    }
}

/// Servers drop the bodies of these without a look at them.
#[test]
fn an_answer_that_is_whole_with_its_head_cancels_nothing() {
    for (method, status) in [
        (Method::HEAD, 200),
        (Method::CONNECT, 200),
        (Method::GET, 204),
        (Method::GET, 304),
        (Method::GET, 101),
    ] {
        runtime().block_on(async {
            let mut request = Request::new(());
            *request.method_mut() = method;
            let answer = Response::builder().status(status);
            let answer = answer.body(stream([frame("unseen")], After::Nothing));
            let answer = answer.expect("an answer");
            let (body, context) = answer_to(request, http().at_most(FAR), answer).await;
            drop(body);
            assert_eq!(context.token().cause(), None, "{status}");
        });
    }
}

#[test]
fn an_error_of_a_stream_is_passed_on_and_cancels_nothing() {
    runtime().block_on(async {
        let broken = stream([], After::Fails);
        let (mut body, context) = answer(http().at_most(FAR), broken).await;
        let error = next(&mut body).await.expect("a frame").unwrap_err();
        assert_eq!(error.to_string(), "the disk is gone");
        assert!(error.is::<io::Error>());
        drop(body);
        assert_eq!(context.token().cause(), None);
    });
}

#[test]
fn over_http_a_stream_breaks_off_when_time_is_up() {
    let runtime = runtime();
    let layer = http().at_most(short_limit());
    let service = service_fn(async |_| {
        Ok::<_, Infallible>(Response::new(stream([frame("first")], After::Nothing)))
    });
    let address = wire::serve(&runtime, &layer, service);
    let answer = wire::answered(address, "");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    // The last chunk, of no bytes, is missing.
    assert!(answer.ends_with("\r\n\r\n5\r\nfirst\r\n"), "{answer}");
}

#[test]
fn over_http_a_stream_in_the_layer_of_grpc_breaks_off_too() {
    let runtime = runtime();
    let layer: ServerLayer<Answer> = ServerLayer::grpc().at_most(short_limit());
    let service = service_fn(async |_| {
        Ok::<_, Infallible>(Response::new(stream([frame("first")], After::Nothing)))
    });
    let answer = wire::answered(wire::serve(&runtime, &layer, service), "");
    assert!(answer.ends_with("\r\n\r\n5\r\nfirst\r\n"), "{answer}");
}

/// Its server drops the body when it has the bytes that were promised.
#[test]
fn over_http_a_client_that_has_the_whole_answer_cancels_nothing() {
    let runtime = runtime();
    let (sender, contexts) = channel();
    let service = service_fn(move |_| {
        let _ = sender.send(CallContext::current());
        let answer = Response::builder().header("content-length", "5");
        let answer = answer.body(stream([frame("first")], After::Nothing));
        future::ready(Ok::<_, Infallible>(answer.expect("an answer")))
    });
    let answer = wire::answered(wire::serve(&runtime, &http(), service), "");
    assert!(answer.ends_with("\r\n\r\nfirst"), "{answer}");
    let context = contexts.recv().expect("it is called");
    assert_eq!(context.token().cause(), None);
}

#[test]
fn over_http_a_client_that_hangs_up_in_a_stream_stops_the_work() {
    let runtime = runtime();
    let (sender, contexts) = channel();
    let service = service_fn(move |_| {
        let _ = sender.send(CallContext::current());
        let endless = stream([frame("first")], After::Nothing);
        future::ready(Ok::<_, Infallible>(Response::new(endless)))
    });
    let address = wire::serve(&runtime, &http(), service);
    let mut client = wire::raw(address, "");
    let mut head = Vec::new();
    while !head.ends_with(b"first\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("the head and a chunk");
        head.push(byte[0]);
    }
    let context = contexts.recv().expect("it is called");
    assert_eq!(context.token().cause(), None);
    drop(client);
    let cause = context.token().wait_timeout(SOON);
    assert_eq!(cause, Some(Cause::Cancelled));
}

/// Tonic's own client, which waits for ever, of a server whose streams have two numbers and then nothing.
/// With the layer for plain HTTP, the stream ended without an error.
#[test]
fn over_grpc_a_stream_ends_with_deadline_exceeded_in_every_layer() {
    type Layer = ServerLayer<fn(Refusal) -> Response<tonic::body::Body>>;
    let layers: [Layer; 3] = [
        ServerLayer::grpc(),
        ServerLayer::http(DeadlineHeader::envoy()),
        ServerLayer::new(DeadlineHeader::envoy(), |_| Response::default()),
    ];
    let runtime = runtime();
    let _inside = runtime.enter();
    for layer in layers {
        let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        let address = incoming.local_addr().expect("it has an address");
        let service = service_fn(async |request: Request<tonic::body::Body>| {
            let handler = service_fn(async |_: tonic::Request<u64>| {
                let numbers = futures::stream::iter([Ok::<_, Status>(1), Ok(2)]);
                let endless = numbers.chain(futures::stream::pending());
                Ok::<_, Status>(tonic::Response::new(endless.boxed()))
            });
            let mut server = tonic::server::Grpc::new(Numbers);
            Ok::<_, Infallible>(server.server_streaming(handler, request).await)
        });
        let layer = layer.at_most(short_limit());
        let server = Server::builder().layer(layer);
        runtime.spawn(server.serve_with_incoming(service, incoming));

        runtime.block_on(async {
            let mut client = tonic::client::Grpc::new(channel_to(address));
            client.ready().await.expect("it is ready");
            let path = PathAndQuery::from_static(PATH);
            let answer = client.server_streaming(tonic::Request::new(0), path, Numbers);
            let mut numbers = answer.await.expect("a stream").into_inner();
            assert_eq!(numbers.message().await.expect("a number"), Some(1));
            assert_eq!(numbers.message().await.expect("a number"), Some(2));
            let status = numbers.message().await.expect_err("time is up");
            assert_eq!(status.code(), Code::DeadlineExceeded);
            assert_eq!(status.message(), PASSED);
        });
    }
}
