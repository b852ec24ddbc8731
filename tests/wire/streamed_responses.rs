//! A request's deadline covers its whole response: a stream ends at the deadline, and a client that
//! disconnects cancels the request's operations.

use crate::{grpc_service, support, wire};
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
use grpc_service::{Numbers, PATH, channel_to};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use support::{Drops, SOON, Tracked, paused_runtime, runtime, short_limit, until_past};
use timeout_runtime::integrations::tower::{DeadlineHeader, Refusal, ServerLayer};
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline, Registration};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Status};
use tower::util::BoxService;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

const FAR: Duration = Duration::from_secs(600);

/// How a stream continues after its frames.
#[derive(Clone, Copy, Default)]
enum After {
    #[default]
    Nothing,
    Ends,
    Fails,
    /// `is_end_stream` is true after the last frame.
    EndsWithLastFrame,
    /// Pending, and wakes its task immediately.
    Busy,
    /// Blocks its thread until the deadline has passed, and then returns another frame.
    Late,
}

/// A body with these frames.
#[derive(Default)]
struct Stream {
    frames: VecDeque<Frame<Bytes>>,
    after: After,
    /// Receives the remaining time and the token's cause at each poll.
    seen: Option<Sender<(Option<Duration>, Option<Cause>)>>,
    kept: Option<Tracked>,
    watched: Option<Registration>,
    dropped: Option<Dropped>,
    /// The exact size that the body declares.
    size: Option<u64>,
}

/// Sends the remaining time when it is dropped.
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
                // A callback makes the timer thread cancel the token.
                let watched = || CancelToken::current().on_cancel(|| {});
                self.watched.get_or_insert_with(watched);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            After::Ends | After::EndsWithLastFrame => Poll::Ready(None),
            After::Fails => Poll::Ready(Some(Err(io::Error::other("the disk is gone")))),
            After::Late => {
                until_past(&CancelToken::current());
                Poll::Ready(Some(Ok(frame("late"))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.after, After::EndsWithLastFrame) && self.frames.is_empty()
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

type OnRefusal = fn(Refusal) -> Response<Stream>;
type Inner = BoxService<Request<()>, Response<Stream>, Infallible>;

fn cause_of(context: &CallContext) -> Option<Cause> {
    context.run(CancelToken::current).cause()
}

fn http() -> ServerLayer {
    ServerLayer::new(DeadlineHeader::Envoy)
}

fn grpc() -> ServerLayer {
    ServerLayer::new(DeadlineHeader::Grpc)
}

/// A response body as the layer returns it.
trait Streamed: Body<Data = Bytes, Error = BoxError> + Unpin {}

impl<B: Body<Data = Bytes, Error = BoxError> + Unpin> Streamed for B {}

/// The response body as `layer` returns it, and the context in which the service ran.
async fn response(layer: ServerLayer, stream: Stream) -> (impl Streamed, CallContext) {
    response_to(Request::new(()), layer, Response::new(stream)).await
}

async fn response_to<L, B>(
    request: Request<()>,
    layer: L,
    response: Response<Stream>,
) -> (B, CallContext)
where
    L: Layer<Inner>,
    L::Service: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let mut response = Some(response);
    let (sender, contexts) = channel();
    let service = service_fn(move |_| {
        let _ = sender.send(CallContext::current());
        let response = response.take().expect("the service is called once");
        future::ready(Ok::<_, Infallible>(response))
    });
    let service = BoxService::new(service);
    let response = layer.layer(service).oneshot(request).await;
    let response = response.unwrap_or_else(|never| match never {});
    (
        response.into_body(),
        contexts.recv().expect("the service is called"),
    )
}

async fn next(body: &mut impl Streamed) -> Option<Result<Frame<Bytes>, BoxError>> {
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

// Fails if a body that is not gRPC ends with trailers, or if the body is kept after its end.
#[test]
fn a_stream_ends_with_an_error_at_the_deadline() {
    paused_runtime().block_on(async {
        let start = tokio::time::Instant::now();
        let drops = Drops::default();
        let mut endless = stream([frame("first")], After::Nothing);
        endless.kept = Some(drops.value());
        let (mut body, context) = response(http().at_most(FAR), endless).await;
        assert_data(next(&mut body).await, "first");
        assert_expired(next(&mut body).await);
        assert!(start.elapsed() >= FAR);
        assert_eq!(drops.count(), 1);
        assert_eq!(cause_of(&context), Some(Cause::DeadlineExceeded));
        assert!(body.is_end_stream() && next(&mut body).await.is_none());
    });
}

/// The frame after the first one, at the deadline, of an endless response with this content type.
fn follows<A, B>(layer: ServerLayer<A>, kind: &str) -> Result<Frame<Bytes>, BoxError>
where
    ServerLayer<A>: Layer<Inner>,
    <ServerLayer<A> as Layer<Inner>>::Service:
        Service<Request<()>, Response = Response<B>, Error = Infallible>,
    B: Streamed,
{
    paused_runtime().block_on(async {
        let response = Response::builder().header("content-type", kind);
        let response = response.body(stream([frame("first")], After::Nothing));
        let layer = layer.at_most(FAR);
        let response = response.expect("a response");
        let (mut body, _) = response_to(Request::new(()), layer, response).await;
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

// Fails if a gRPC body ends with an error of the transport, or if the layer compares content types
// with case.
#[test]
fn a_grpc_stream_ends_with_deadline_exceeded_at_the_deadline() {
    for kind in KINDS {
        assert_trailers(follows(grpc(), kind), "4", PASSED);
    }
}

/// The trailers used to be empty, so the truncated response looked complete.
// Fails if such a stream ends without a status.
#[test]
fn a_grpc_stream_ends_with_a_status_even_if_the_refusal_has_none() {
    for kind in KINDS {
        assert_trailers(follows(http(), kind), "4", PASSED);
        let silent: OnRefusal = |_| Response::new(Stream::default());
        let layer = http().respond_with(silent);
        assert_trailers(follows(layer, kind), "4", PASSED);
    }
}

/// A layer whose refusal has these headers.
macro_rules! refusal {
    ($($name:literal: $value:literal),*) => {{
        let on_refusal: OnRefusal = |_| {
            let response = Response::builder()$(.header($name, $value))*;
            response.body(Stream::default()).expect("a response")
        };
        http().respond_with(on_refusal)
    }};
}

/// `grpc-status: 0` would mark the truncated response as complete; clients disagree about other
/// values.
// Fails if the stream ends with the status `0`, with two statuses or with a malformed one.
#[test]
fn a_grpc_stream_never_ends_with_a_status_other_than_an_error() {
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
fn a_grpc_stream_ends_with_the_refusals_status() {
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

/// The refusal is a response of its own; the layer reads only its head.
#[test]
fn a_status_in_the_refusals_trailers_is_ignored() {
    let on_refusal: OnRefusal = |_| {
        let status = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
        Response::new(stream([Frame::trailers(status)], After::Nothing))
    };
    let layer = http().respond_with(on_refusal);
    assert_trailers(follows(layer, "application/grpc"), "4", PASSED);
}

/// The head declared five bytes, and all five were sent.
#[test]
fn a_grpc_stream_gets_a_status_after_its_declared_length() {
    paused_runtime().block_on(async {
        let response = Response::builder()
            .header("content-type", "application/grpc")
            .header("content-length", "5")
            .body(stream([frame("first")], After::Nothing));
        let response = response.expect("a response");
        let (mut body, _) = response_to(Request::new(()), http().at_most(FAR), response).await;
        assert_data(next(&mut body).await, "first");
        let last = next(&mut body).await.expect("a frame");
        assert_trailers(last, "4", PASSED);
    });
}

/// Such clients do not read trailers, so trailers would make the truncated response look complete.
#[test]
fn a_stream_of_another_content_type_ends_with_an_error() {
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
        for last in [
            follows(http(), kind),
            follows(grpc(), kind),
            follows(refusal!("grpc-status": "8"), kind),
        ] {
            let error = last.expect_err("time is up");
            assert_eq!(error.downcast_ref(), Some(&Refusal::Expired), "{kind}");
        }
    }
}

// Fails if the first poll takes place after the deadline.
#[test]
fn a_stream_does_not_start_after_the_deadline() {
    paused_runtime().block_on(async {
        let (sender, seen) = channel();
        let mut endless = stream([frame("first")], After::Nothing);
        endless.seen = Some(sender);
        let (mut body, _) = response(http().at_most(FAR), endless).await;
        tokio::time::advance(FAR).await;
        assert_expired(next(&mut body).await);
        assert_eq!(seen.try_iter().count(), 0);
    });
}

/// The head declares five bytes, in a header or by the body's size hint.
#[test]
fn a_response_with_its_declared_length_is_complete() {
    paused_runtime().block_on(async {
        for in_header in [true, false] {
            let mut five = stream([frame("fi"), frame("rst")], After::Nothing);
            let response = Response::builder();
            let response = if in_header {
                response.header("content-length", "5")
            } else {
                five.size = Some(5);
                response
            };
            let response = response.body(five).expect("a response");
            let (mut body, context) =
                response_to(Request::new(()), http().at_most(FAR), response).await;
            assert_data(next(&mut body).await, "fi");
            assert_data(next(&mut body).await, "rst");
            // A server that polls again gets no error.
            assert!(next(&mut body).await.is_none());
            assert_eq!(cause_of(&context), Some(Cause::DeadlineExceeded));
        }
    });
}

// Fails if the layer does not count the declared length.
#[test]
fn a_client_that_received_the_declared_length_cancels_nothing() {
    runtime().block_on(async {
        let response = Response::builder().header("content-length", "5");
        let response = response.body(stream([frame("fi"), frame("rst")], After::Nothing));
        let response = response.expect("a response");
        let (mut body, context) =
            response_to(Request::new(()), http().at_most(FAR), response).await;
        assert_data(next(&mut body).await, "fi");
        assert_data(next(&mut body).await, "rst");
        drop(body);
        assert_eq!(cause_of(&context), None);
    });
}

#[test]
fn a_client_that_received_less_than_the_declared_length_cancels_the_operations() {
    runtime().block_on(async {
        let response = Response::builder().header("content-length", "6");
        let response = response.body(stream([frame("first")], After::Nothing));
        let response = response.expect("a response");
        let (mut body, context) =
            response_to(Request::new(()), http().at_most(FAR), response).await;
        assert_data(next(&mut body).await, "first");
        drop(body);
        assert_eq!(cause_of(&context), Some(Cause::Cancelled));
    });
}

/// This includes the body of a late response.
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

/// Outer layers require `Default` of the body, to make empty ones.
#[test]
fn outer_layers_can_make_bodies() {
    let layer = grpc();
    let service = service_fn(async |_| Ok::<_, Infallible>(Response::new(Stream::default())));
    let service = layer.layer(http().layer(service));
    let request = Request::get("/").header("grpc-timeout", "0n").body(());
    let served = service.oneshot(request.expect("a request"));
    let served = runtime().block_on(served);
    let status = served.map(|served| served.headers()["grpc-status"].clone());
    assert_eq!(status, Ok(HeaderValue::from_static("4")));
}

#[test]
fn a_stream_is_polled_in_its_requests_context_and_once_more_after_the_deadline() {
    paused_runtime().block_on(async {
        let (sender, seen) = channel();
        let mut endless = stream([frame("first")], After::Nothing);
        endless.seen = Some(sender);
        let (mut body, _) = response(http().at_most(FAR), endless).await;
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

/// The last poll used to come microseconds before the timer thread cancelled the token.
// Fails if the last poll comes before the cancellation.
#[test]
fn a_busy_stream_is_cancelled_before_it_is_dropped() {
    for _ in 0..20 {
        let (sender, seen) = channel();
        let mut busy = stream([], After::Busy);
        busy.seen = Some(sender);
        runtime().block_on(async {
            let limit = short_limit() / 4;
            let (mut body, _) = response(http().at_most(limit), busy).await;
            assert_expired(next(&mut body).await);
        });
        let last = seen.try_iter().last();
        assert_eq!(
            last,
            Some((Some(Duration::ZERO), Some(Cause::DeadlineExceeded)))
        );
    }
}

// Fails if a frame after the deadline is sent.
#[test]
fn a_late_frame_is_dropped() {
    let late = stream([], After::Late);
    runtime().block_on(async {
        let limit = short_limit();
        let (mut body, context) = response(http().at_most(limit), late).await;
        assert_expired(next(&mut body).await);
        assert_eq!(cause_of(&context), Some(Cause::DeadlineExceeded));
    });
}

// Fails if the guard of the request is disarmed at the head of the response.
#[test]
fn a_stream_whose_client_disconnects_cancels_the_operations() {
    for limit in [FAR, Duration::MAX] {
        runtime().block_on(async {
            let endless = stream([frame("first")], After::Nothing);
            let (mut body, context) = response(http().at_most(limit), endless).await;
            assert_data(next(&mut body).await, "first");
            assert_eq!(cause_of(&context), None);
            drop(body);
            assert_eq!(cause_of(&context), Some(Cause::Cancelled));
        });
    }
}

// Fails if the guard of the request is kept after the end of the stream.
#[test]
fn a_stream_that_ends_in_time_cancels_nothing() {
    let outcomes = [
        (vec![], After::Ends),
        (vec![], After::EndsWithLastFrame),
        (vec![frame("last")], After::Ends),
        (vec![frame("last")], After::EndsWithLastFrame),
        (vec![frame("last"), trailers()], After::Nothing),
    ];
    for (frames, after) in outcomes {
        runtime().block_on(async {
            let count = frames.len();
            let (mut body, context) = response(http().at_most(FAR), stream(frames, after)).await;
            for _ in 0..count {
                let frame = next(&mut body).await.expect("a frame");
                frame.expect("no error");
            }
            if let After::Ends = after {
                assert!(next(&mut body).await.is_none());
            }
            drop(body);
            assert_eq!(cause_of(&context), None);
        });
    }
}

/// Servers drop the bodies of such responses without a poll.
#[test]
fn a_response_that_has_no_body_cancels_nothing() {
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
            let response = Response::builder().status(status);
            let response = response.body(stream([frame("unseen")], After::Nothing));
            let response = response.expect("a response");
            let (body, context) = response_to(request, http().at_most(FAR), response).await;
            drop(body);
            assert_eq!(cause_of(&context), None, "{status}");
        });
    }
}

#[test]
fn a_streams_error_is_returned_and_cancels_nothing() {
    runtime().block_on(async {
        let broken = stream([], After::Fails);
        let (mut body, context) = response(http().at_most(FAR), broken).await;
        let error = next(&mut body).await.expect("a frame").unwrap_err();
        assert_eq!(error.to_string(), "the disk is gone");
        assert!(error.is::<io::Error>());
        drop(body);
        assert_eq!(cause_of(&context), None);
    });
}

// Fails if the deadline wakes no task.
#[test]
fn an_http_stream_breaks_off_at_the_deadline() {
    let runtime = runtime();
    let layer = http().at_most(short_limit());
    let service = service_fn(async |_| {
        Ok::<_, Infallible>(Response::new(stream([frame("first")], After::Nothing)))
    });
    let address = wire::serve(&runtime, &layer, service);
    let response = wire::response_to(address, "");
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    // The final chunk, of zero bytes, is missing.
    assert!(response.ends_with("\r\n\r\n5\r\nfirst\r\n"), "{response}");
}

#[test]
fn an_http_stream_in_the_grpc_layer_breaks_off_too() {
    let runtime = runtime();
    let layer = grpc().at_most(short_limit());
    let service = service_fn(async |_| {
        Ok::<_, Infallible>(Response::new(stream([frame("first")], After::Nothing)))
    });
    let response = wire::response_to(wire::serve(&runtime, &layer, service), "");
    assert!(response.ends_with("\r\n\r\n5\r\nfirst\r\n"), "{response}");
}

/// The server drops the body when all declared bytes are sent.
#[test]
fn an_http_client_with_the_whole_response_cancels_nothing() {
    let runtime = runtime();
    let (sender, contexts) = channel();
    let service = service_fn(move |_| {
        let _ = sender.send(CallContext::current());
        let response = Response::builder().header("content-length", "5");
        let response = response.body(stream([frame("first")], After::Nothing));
        future::ready(Ok::<_, Infallible>(response.expect("a response")))
    });
    let response = wire::response_to(wire::serve(&runtime, &http(), service), "");
    assert!(response.ends_with("\r\n\r\nfirst"), "{response}");
    let context = contexts.recv().expect("the service is called");
    assert_eq!(cause_of(&context), None);
}

#[test]
fn an_http_client_that_disconnects_in_a_stream_stops_the_operation() {
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
    let context = contexts.recv().expect("the service is called");
    assert_eq!(cause_of(&context), None);
    drop(client);
    let cause = context.run(CancelToken::current).wait_timeout(SOON);
    assert_eq!(cause, Some(Cause::Cancelled));
}

/// A tonic client without a timeout, and a server whose streams stall after two numbers.
/// With the layer for plain HTTP, the stream used to end without an error.
#[test]
fn a_tonic_stream_ends_with_deadline_exceeded_in_every_layer() {
    /// Serves inside this layer, and returns the address.
    macro_rules! serve {
        ($layer:expr) => {{
            let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
            let address = incoming.local_addr().expect("it has an address");
            let server = Server::builder().layer($layer.at_most(short_limit()));
            tokio::spawn(server.serve_with_incoming(service_fn(numbers), incoming));
            address
        }};
    }

    async fn numbers(
        request: Request<tonic::body::Body>,
    ) -> Result<Response<tonic::body::Body>, Infallible> {
        let handler = service_fn(async |_: tonic::Request<u64>| {
            let numbers = futures::stream::iter([Ok::<_, Status>(1), Ok(2)]);
            let endless = numbers.chain(futures::stream::pending());
            Ok::<_, Status>(tonic::Response::new(endless.boxed()))
        });
        let mut server = tonic::server::Grpc::new(Numbers);
        Ok(server.server_streaming(handler, request).await)
    }

    let respond = |_| Response::<tonic::body::Body>::default();
    runtime().block_on(async {
        for address in [
            serve!(grpc()),
            serve!(http()),
            serve!(http().respond_with(respond)),
        ] {
            let mut client = tonic::client::Grpc::new(channel_to(address));
            client.ready().await.expect("the client is ready");
            let path = PathAndQuery::from_static(PATH);
            let response = client.server_streaming(tonic::Request::new(0), path, Numbers);
            let mut numbers = response.await.expect("a stream").into_inner();
            assert_eq!(numbers.message().await.expect("a number"), Some(1));
            assert_eq!(numbers.message().await.expect("a number"), Some(2));
            let status = numbers.message().await.expect_err("time is up");
            assert_eq!(status.code(), Code::DeadlineExceeded);
            assert_eq!(status.message(), PASSED);
        }
    });
}
