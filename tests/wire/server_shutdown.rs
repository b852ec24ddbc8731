//! A token that cancels all requests of a server: their operations, their responses, and new
//! requests.

use crate::grpc_service::{Numbers, ask};
use crate::request_work::Work;
use crate::support::{Drops, Gate, Tracked, block_on, paused_runtime, poll_once, runtime};
use std::convert::Infallible;
use std::error::Error;
use std::future;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame};
use timeout_runtime::integrations::tower::{DeadlineHeader, Refusal, ServerLayer};
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline, TimeoutError, timeout};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Status};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

type Served = Result<Response<String>, Infallible>;

fn http(shutdown: &CancelToken) -> ServerLayer {
    ServerLayer::new(DeadlineHeader::Envoy).upstream(shutdown)
}

fn ask_for(path: &str) -> Request<()> {
    Request::get(path).body(()).expect("a request")
}

fn cancelled() -> CancelToken {
    let token = CancelToken::new();
    token.cancel_with("restart");
    token
}

/// A service that must not be called.
fn out_of_reach() -> impl Service<Request<()>, Response = Response<String>, Error = Infallible> {
    service_fn(|_| -> future::Ready<Served> { panic!("the service was called") })
}

/// Starts a request to `service`, cancels the layer's token, and returns the response's status.
fn status_after<S>(service: S, shutdown: &CancelToken) -> StatusCode
where
    S: Service<Request<()>, Response = Response<String>, Error = Infallible>,
{
    let (mut request, woken) = (
        Box::pin(http(shutdown).layer(service).oneshot(ask_for("/"))),
        Gate::new(),
    );
    assert!(poll_once(&mut request, &woken).is_pending());
    shutdown.cancel();
    woken.wait();
    block_on(request).map_or_else(|never| match never {}, |response| response.status())
}

#[test]
fn the_token_cancels_every_operation_and_the_client_gets_503() {
    let (work, service) = Work::service();
    let (runtime, shutdown) = (runtime(), CancelToken::new());
    let request = http(&shutdown).layer(service).oneshot(ask_for("/"));
    let request = runtime.spawn(request);
    work.wait_until_started();
    shutdown.cancel();
    let response = runtime.block_on(request).expect("it does not panic");
    let status = response.map(|response| response.status());
    assert_eq!(status, Ok(StatusCode::SERVICE_UNAVAILABLE));
    work.assert_cancelled(Cause::Cancelled);
}

// Fails if the layer does not wait for its token: nothing else wakes the task.
#[test]
fn a_service_that_ignores_its_token_is_dropped() {
    let (drops, shutdown) = (Drops::default(), CancelToken::new());
    let kept = drops.clone();
    let service = service_fn(move |_| {
        let kept = kept.value();
        async move {
            let _kept = kept;
            future::pending::<Served>().await
        }
    });
    let status = status_after(service, &shutdown);
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(drops.count(), 1);
}

// Fails if there is no last poll, or if it comes before the operations are cancelled.
#[test]
fn a_service_sees_the_cancellation_in_its_last_poll() {
    let (seen, shutdown) = (Gate::new(), CancelToken::new());
    let gate = seen.clone();
    let service = service_fn(move |_| {
        let (gate, token) = (gate.clone(), CancelToken::current());
        future::poll_fn(move |_| {
            if token.cause() == Some(Cause::Cancelled) {
                gate.open();
            }
            Poll::<Served>::Pending
        })
    });
    let status = status_after(service, &shutdown);
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(seen.is_open());
}

/// The handler cannot know whether its own response says that the server shuts down.
#[test]
fn a_response_after_the_cancellation_is_replaced() {
    let shutdown = CancelToken::new();
    let service = service_fn(async |_| {
        CancelToken::current().cancelled().await;
        Served::Ok(Response::new("an error page".to_owned()))
    });
    let status = status_after(service, &shutdown);
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

#[timeout(name = "server_shutdown::work", secs = 600)]
async fn work() -> Result<(), TimeoutError> {
    future::pending().await
}

#[test]
fn calls_get_the_reason_of_the_token() {
    let shutdown = CancelToken::new();
    let (sender, reasons) = channel();
    let service = service_fn(move |_| {
        let sender = sender.clone();
        async move {
            let error = work().await.expect_err("it never ends by itself");
            let _ = sender.send((error.cause(), error.source().map(ToString::to_string)));
            future::pending::<Served>().await
        }
    });
    let mut request = Box::pin(http(&shutdown).layer(service).oneshot(ask_for("/")));
    assert!(poll_once(&mut request, &Gate::new()).is_pending());
    shutdown.cancel_with("restart");
    assert!(poll_once(&mut request, &Gate::new()).is_ready());
    let reason = Some("restart".to_owned());
    assert_eq!(reasons.try_recv(), Ok((Cause::Cancelled, reason)));
}

// Fails if the layer does not read its token on entry.
#[test]
fn a_request_after_the_cancellation_does_not_reach_the_service() {
    let served = |layer: ServerLayer| {
        let service = layer.layer(out_of_reach());
        let response = block_on(service.oneshot(ask_for("/")));
        let (head, body) = response.unwrap_or_else(|never| match never {}).into_parts();
        let body = block_on(body.collect()).expect("a complete body");
        assert_eq!(body.to_bytes(), "");
        head
    };
    let refused = served(http(&cancelled()));
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);

    let refused = served(ServerLayer::new(DeadlineHeader::Grpc).upstream(&cancelled()));
    assert_eq!(refused.status, StatusCode::OK);
    assert_eq!(refused.headers["content-type"], "application/grpc");
    assert_eq!(refused.headers["grpc-status"], "14");
    let message = "the server has cancelled the request";
    assert_eq!(refused.headers["grpc-message"], message);
}

#[test]
fn respond_with_creates_the_response_to_a_cancelled_request() {
    let layer = http(&cancelled()).respond_with(|refusal: Refusal| {
        assert_eq!(refusal, Refusal::Cancelled);
        Response::new("back in a minute".to_owned())
    });
    let response = block_on(layer.layer(out_of_reach()).oneshot(ask_for("/")));
    let body = response.unwrap_or_else(|never| match never {}).into_body();
    let body = block_on(body.collect()).expect("a complete body");
    assert_eq!(body.to_bytes(), "back in a minute");
}

/// The first poll comes after the cancellation, as behind a queue.
// Fails if the first poll takes place after the cancellation.
#[test]
fn a_service_does_not_start_after_the_cancellation() {
    let shutdown = CancelToken::new();
    let service =
        service_fn(|_| future::poll_fn(|_| -> Poll<Served> { panic!("the service was polled") }));
    let request = http(&shutdown).layer(service).call(ask_for("/"));
    shutdown.cancel();
    let status = block_on(request).map(|response| response.status());
    assert_eq!(status, Ok(StatusCode::SERVICE_UNAVAILABLE));
}

/// The first request ends with the cancellation, which makes the service ready for the second one.
// Fails if the waiting request is passed to the service.
#[test]
fn a_request_that_waits_does_not_reach_the_service_after_the_cancellation() {
    let shutdown = CancelToken::new();
    let (sender, reached) = channel();
    let service = ServiceBuilder::new()
        .layer(http(&shutdown).count_waiting())
        .concurrency_limit(1)
        .service(service_fn(move |request: Request<()>| {
            let _ = sender.send(request.uri().path().to_owned());
            future::pending::<Served>()
        }));
    let mut requests = ["/first", "/second"].map(|path| {
        let request = service.clone().oneshot(ask_for(path));
        Box::pin(async { request.await.map(|response| response.status()) })
    });
    for request in &mut requests {
        assert!(poll_once(request, &Gate::new()).is_pending());
    }
    shutdown.cancel();
    for request in requests {
        assert_eq!(block_on(request), Ok(StatusCode::SERVICE_UNAVAILABLE));
    }
    assert_eq!(reached.try_iter().collect::<Vec<_>>(), ["/first"]);
}

#[test]
fn each_of_several_tokens_cancels_the_requests() {
    for which in 0..3 {
        let tokens = [(); 3].map(|()| CancelToken::new());
        let layer = tokens[1..]
            .iter()
            .fold(http(&tokens[0]), ServerLayer::upstream);
        let service = service_fn(|_| future::pending::<Served>());
        let request = layer.layer(service).oneshot(ask_for("/"));
        let (mut request, woken) = (Box::pin(request), Gate::new());
        assert!(poll_once(&mut request, &woken).is_pending());
        tokens[which].cancel();
        woken.wait();
        let status = block_on(request).map(|response| response.status());
        assert_eq!(status, Ok(StatusCode::SERVICE_UNAVAILABLE));
    }
}

#[test]
fn a_deadline_that_passes_first_stays_the_refusal() {
    paused_runtime().block_on(async {
        let shutdown = CancelToken::new();
        let layer = http(&shutdown).at_most(Duration::from_secs(1));
        let service = service_fn(|_| future::pending::<Served>());
        let mut request = Box::pin(layer.layer(service).oneshot(ask_for("/")));
        assert!(poll_once(&mut request, &Gate::new()).is_pending());
        tokio::time::sleep(Duration::from_secs(2)).await;
        shutdown.cancel();
        let status = request.await.map(|response| response.status());
        assert_eq!(status, Ok(StatusCode::GATEWAY_TIMEOUT));
    });
}

/// Disconnects and deadlines concern one request, and the token all of them.
// Fails if a request is not cancelled through a token of its own.
#[test]
fn the_end_of_one_request_leaves_the_token_alone() {
    paused_runtime().block_on(async {
        let shutdown = CancelToken::new();
        let layer = http(&shutdown).at_most(Duration::from_secs(1));
        let layer = layer.layer(service_fn(|_| future::pending::<Served>()));
        let mut dropped = Box::pin(layer.clone().oneshot(ask_for("/")));
        assert!(poll_once(&mut dropped, &Gate::new()).is_pending());
        drop(dropped);
        let late = layer.oneshot(ask_for("/")).await;
        let status = late.map(|response| response.status());
        assert_eq!(status, Ok(StatusCode::GATEWAY_TIMEOUT));
        assert!(!shutdown.is_cancelled());
    });
}

#[test]
fn operations_that_continue_after_the_response_are_cancelled() {
    let shutdown = CancelToken::new();
    let (sender, contexts) = channel();
    let service = service_fn(move |_| {
        let _ = sender.send(CallContext::current());
        future::ready(Served::Ok(Response::new("accepted".to_owned())))
    });
    let response = block_on(http(&shutdown).layer(service).oneshot(ask_for("/")));
    let body = response.unwrap_or_else(|never| match never {}).into_body();
    let body = block_on(body.collect()).expect("a complete body");
    assert_eq!(body.to_bytes(), "accepted");
    let context = contexts.recv().expect("the service was called");
    assert_eq!(context.run(CancelToken::current).cause(), None);
    shutdown.cancel();
    assert_eq!(
        context.run(CancelToken::current).cause(),
        Some(Cause::Cancelled)
    );
    assert_eq!(context.run(Deadline::current), Deadline::never());
}

/// A body of one frame and no end.
#[derive(Default)]
struct Endless {
    has_begun: bool,
    _kept: Option<Tracked>,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.has_begun {
            return Poll::Pending;
        }
        self.has_begun = true;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"first")))))
    }
}

/// The frame that follows the first one after the cancellation, in a response of this type.
fn last_frame(content_type: &'static str) -> Result<Frame<Bytes>, BoxError> {
    let (shutdown, drops) = (CancelToken::new(), Drops::default());
    let kept = drops.clone();
    let service = service_fn(move |_| {
        let mut response = Response::new(Endless {
            has_begun: false,
            _kept: Some(kept.value()),
        });
        let content_type = http::HeaderValue::from_static(content_type);
        response.headers_mut().insert("content-type", content_type);
        future::ready(Ok::<_, Infallible>(response))
    });
    let response = block_on(http(&shutdown).layer(service).oneshot(ask_for("/")));
    let mut body = response.unwrap_or_else(|never| match never {}).into_body();
    let first = block_on(body.frame()).expect("a frame").expect("no error");
    assert_eq!(first.into_data().expect("data"), "first");

    let woken = Gate::new();
    assert!(poll_once(&mut body.frame(), &woken).is_pending());
    shutdown.cancel();
    woken.wait();
    let last = block_on(body.frame()).expect("a frame");
    assert_eq!(drops.count(), 1);
    assert!(block_on(body.frame()).is_none());
    last
}

/// The client must not take the part for the whole.
#[test]
fn a_stream_ends_with_an_error() {
    let error = last_frame("text/plain").expect_err("the stream is incomplete");
    assert_eq!(error.downcast_ref(), Some(&Refusal::Cancelled));
}

#[test]
fn a_grpc_stream_ends_with_the_status_unavailable() {
    let trailers = last_frame("application/grpc").expect("no error");
    let trailers = trailers.into_trailers().expect("trailers");
    assert_eq!(trailers["grpc-status"], "14");
}

#[test]
fn a_tonic_client_gets_the_status_unavailable() {
    let (runtime, shutdown, started) = (runtime(), CancelToken::new(), Gate::new());
    let inside = runtime.enter();
    let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let address = incoming.local_addr().expect("it has an address");
    let gate = started.clone();
    let service = service_fn(move |request: Request<tonic::body::Body>| {
        let gate = gate.clone();
        let handler = service_fn(move |_: tonic::Request<u64>| {
            gate.open();
            future::pending::<Result<tonic::Response<u64>, Status>>()
        });
        async move {
            let mut server = tonic::server::Grpc::new(Numbers);
            Ok::<_, Infallible>(server.unary(handler, request).await)
        }
    });
    let layer = ServerLayer::new(DeadlineHeader::Grpc).upstream(&shutdown);
    let server = Server::builder().layer(layer);
    runtime.spawn(server.serve_with_incoming(service, incoming));
    drop(inside);

    let in_progress = runtime.spawn(ask(address));
    started.wait();
    shutdown.cancel();
    let in_progress = runtime.block_on(in_progress).expect("it does not panic");
    for status in [in_progress, runtime.block_on(ask(address))] {
        assert_eq!(
            status.map_err(|status| status.code()),
            Err(Code::Unavailable)
        );
    }
}
