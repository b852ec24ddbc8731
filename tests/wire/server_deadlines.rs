//! A service runs under its request's deadline: its operations are cancelled at the deadline, and
//! when the client disconnects.

use crate::request_work::{Work, call};
use crate::support;
use std::convert::Infallible;
use std::future;
use std::pin::pin;
use std::sync::mpsc::channel;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use support::{Drops, Gate, block_on, paused_runtime, runtime, short, short_limit, until_past};
use timeout_runtime::integrations::tower::{DeadlineHeader, Refusal, ServerLayer};
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline};
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

const FAR: Duration = Duration::from_secs(600);

type TextResponse = Response<String>;

fn request(header: &str, value: &str) -> Request<()> {
    let request = Request::get("/").header(header, value);
    request.body(()).expect("a request")
}

/// A request with a deadline of this many milliseconds.
fn with_ms(ms: u64) -> Request<()> {
    request("x-envoy-expected-rq-timeout-ms", &ms.to_string())
}

fn http() -> ServerLayer {
    ServerLayer::new(DeadlineHeader::Envoy)
}

fn grpc() -> ServerLayer {
    ServerLayer::new(DeadlineHeader::Grpc)
}

type Served = Result<TextResponse, Infallible>;

/// The response of `service` to `request`, inside `layer`.
fn serve<L, S, B>(layer: &L, service: S, request: Request<()>) -> TextResponse
where
    L: Layer<S>,
    L::Service: Service<Request<()>, Response = Response<B>, Error = Infallible>,
    B: Body<Data = Bytes, Error = BoxError>,
{
    runtime().block_on(async {
        let served = layer.layer(service).oneshot(request).await;
        read(served.unwrap_or_else(|never| match never {})).await
    })
}

/// The response with its complete body.
async fn read<B>(response: Response<B>) -> TextResponse
where
    B: Body<Data = Bytes, Error = BoxError>,
{
    let (head, body) = response.into_parts();
    let body = body.collect().await.expect("a complete body").to_bytes();
    let text = String::from_utf8(body.into()).expect("a UTF-8 body");
    Response::from_parts(head, text)
}

/// A service that returns the remaining minutes, rounded up.
fn clock() -> impl Service<Request<()>, Response = TextResponse, Error = Infallible> {
    service_fn(async |_| {
        let left = Deadline::current().remaining();
        let minutes = left.map(|left| (left.as_secs_f64() / 60.0).ceil().to_string());
        Ok(Response::new(minutes.unwrap_or("never".to_owned())))
    })
}

/// A service that must not be called.
fn out_of_reach() -> impl Service<Request<()>, Response = TextResponse, Error = Infallible> {
    service_fn(|_| -> future::Ready<Served> { panic!("the service was called") })
}

#[test]
fn a_service_reads_the_remaining_time() {
    assert_eq!(serve(&http(), clock(), with_ms(600_000)).body(), "10");
    let grpc = grpc();
    let asked = request("grpc-timeout", "7M");
    assert_eq!(serve(&grpc, clock(), asked).body(), "7");
}

#[test]
fn a_request_without_header_has_only_the_layers_deadline() {
    assert_eq!(serve(&http(), clock(), Request::new(())).body(), "never");
    let layer = http().at_most(FAR);
    assert_eq!(serve(&layer, clock(), Request::new(())).body(), "10");
    assert_eq!(serve(&layer, clock(), with_ms(3_600_000)).body(), "10");
    assert_eq!(serve(&layer, clock(), with_ms(60_000)).body(), "1");
}

// Fails if the layer does not read the enclosing context.
#[test]
fn the_context_around_the_layer_is_inherited() {
    let limit = |limit| CallContext::current().with_deadline(Deadline::after(limit));
    let served = |limit: CallContext, ms| {
        let served = async {
            let served = http().layer(clock()).oneshot(with_ms(ms)).await;
            read(served.unwrap_or_else(|never| match never {})).await
        };
        runtime().block_on(limit.scope(served))
    };
    assert_eq!(served(limit(FAR), 3_600_000).body(), "10");
    assert_eq!(served(limit(FAR), 60_000).body(), "1");
    let expired = served(limit(Duration::ZERO), 60_000);
    assert_eq!(expired.status(), StatusCode::GATEWAY_TIMEOUT);
}

// Fails if the layer does not check the deadline on entry.
#[test]
fn an_expired_request_does_not_reach_the_service() {
    let plain = serve(&http(), out_of_reach(), with_ms(0));
    assert_eq!(plain.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(plain.body(), "");

    let asked = request("grpc-timeout", "0n");
    let grpc = serve(&grpc(), out_of_reach(), asked);
    assert_eq!(grpc.status(), StatusCode::OK);
    assert_eq!(grpc.headers()["content-type"], "application/grpc");
    assert_eq!(grpc.headers()["grpc-status"], "4");
    assert_eq!(
        grpc.headers()["grpc-message"],
        "the deadline of the request has passed"
    );

    let own = http().respond_with(|refusal| Response::new(format!("sorry: {refusal}")));
    let own = serve(&own, out_of_reach(), with_ms(0));
    assert_eq!(own.body(), "sorry: the deadline of the request has passed");
}

/// A client takes HTTP status 200 without a gRPC status for an empty stream.
// Fails if a refused gRPC request gets no status.
#[test]
fn a_grpc_request_is_refused_with_a_grpc_status() {
    let silent = http().respond_with(|refusal: Refusal| {
        Response::builder()
            .header("grpc-status", "0")
            .body(refusal.to_string())
            .expect("a response")
    });
    let own = http().respond_with(|_| {
        Response::builder()
            .header("grpc-status", "8")
            .body(String::new())
            .expect("a response")
    });
    let asked = |kind: &str, left: &str| {
        let request = Request::post("/").header("content-type", kind);
        let request = request.header("x-envoy-expected-rq-timeout-ms", left);
        request.body(()).expect("a request")
    };
    for kind in [
        "application/grpc",
        "application/grpc-web+proto",
        "Application/gRPC+proto",
    ] {
        for (left, status) in [("0", "4"), ("soon", "13")] {
            let served = serve(&silent, out_of_reach(), asked(kind, left));
            assert_eq!(served.headers()["grpc-status"], status, "{kind}");
            assert_eq!(served.headers()["grpc-message"], served.body().as_str());
            let served = serve(&http(), out_of_reach(), asked(kind, left));
            assert_eq!(served.headers()["grpc-status"], status, "{kind}");
            assert!(!served.status().is_success());
            let served = serve(&own, out_of_reach(), asked(kind, left));
            assert_eq!(served.headers()["grpc-status"], "8", "{kind}");
        }
        let late = service_fn(|_| future::pending::<Served>());
        let served = serve(&silent, late, asked(kind, &short().to_string()));
        assert_eq!(served.headers()["grpc-status"], "4", "{kind}");
    }
    let served = serve(&http(), out_of_reach(), asked("text/plain", "0"));
    assert_eq!(served.headers().get("grpc-status"), None);
}

/// A percent sign in a header name used to start an escape in the message.
#[test]
fn percent_signs_in_a_grpc_message_are_escaped() {
    let header = DeadlineHeader::Millis(http::HeaderName::from_static("x-%41"));
    let layer = ServerLayer::new(header);
    let mut asked = request("x-%41", "soon");
    let kind = http::HeaderValue::from_static("application/grpc");
    asked.headers_mut().insert("content-type", kind);
    let served = serve(&layer, out_of_reach(), asked);
    let message = "`x-%2541` must consist of digits only, at most eight in gRPC";
    assert_eq!(served.headers()["grpc-message"], message);
}

// Fails if a malformed header counts as none.
#[test]
fn a_malformed_header_is_refused() {
    let asked = request("x-envoy-expected-rq-timeout-ms", "-5");
    let plain = serve(&http(), out_of_reach(), asked);
    assert_eq!(plain.status(), StatusCode::BAD_REQUEST);

    let asked = request("grpc-timeout", "99999999H");
    let grpc = serve(&grpc(), out_of_reach(), asked);
    assert_eq!(grpc.headers()["grpc-status"], "13");
    assert_eq!(
        grpc.headers()["grpc-message"],
        "`grpc-timeout` is longer than 400 years"
    );
}

#[test]
fn a_malformed_header_can_be_ignored() {
    let asked = || request("x-envoy-expected-rq-timeout-ms", "-5");
    let layer = http().ignore_malformed();
    assert_eq!(serve(&layer, clock(), asked()).body(), "never");
    assert_eq!(serve(&layer.at_most(FAR), clock(), asked()).body(), "10");
}

#[test]
fn the_deadline_cancels_every_operation_and_sends_a_response() {
    let (work, service) = Work::service();
    let runtime = runtime();
    let start = Instant::now();
    let served = runtime.block_on(http().layer(service).oneshot(with_ms(short())));
    assert!(start.elapsed() >= short_limit());
    let status = served.map(|served| served.status());
    assert_eq!(status, Ok(StatusCode::GATEWAY_TIMEOUT));
    work.assert_cancelled(Cause::DeadlineExceeded);
}

// Fails if operations of the request do not inherit a token.
#[test]
fn a_disconnected_client_cancels_every_operation() {
    let (work, service) = Work::service();
    let runtime = runtime();
    let served = runtime.spawn(http().layer(service).oneshot(with_ms(600_000)));
    work.wait_until_started();
    served.abort();
    work.assert_cancelled(Cause::Cancelled);
}

/// As above, without a deadline.
#[test]
fn a_disconnected_client_without_a_deadline_cancels_every_operation() {
    let (work, service) = Work::service();
    let runtime = runtime();
    let served = runtime.spawn(http().layer(service).oneshot(Request::new(())));
    work.wait_until_started();
    served.abort();
    work.assert_cancelled(Cause::Cancelled);
}

// Fails if there is no last poll.
#[test]
fn a_service_is_polled_once_more_after_the_cancellation() {
    let seen_cancelled = Gate::new();
    let seen = seen_cancelled.clone();
    let service = service_fn(move |_| {
        let seen = seen.clone();
        async move {
            let token = CancelToken::current();
            future::poll_fn(|_| {
                if token.is_cancelled() {
                    seen.open();
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            future::pending::<Served>().await
        }
    });
    let served = serve(&http(), service, with_ms(short()));
    assert_eq!(served.status(), StatusCode::GATEWAY_TIMEOUT);
    assert!(seen_cancelled.is_open());
}

/// The last poll used to come microseconds before the timer thread cancelled the token.
#[test]
fn a_busy_service_is_cancelled_before_it_is_dropped() {
    for _ in 0..20 {
        let seen_cancelled = Gate::new();
        let seen = seen_cancelled.clone();
        let service = service_fn(move |_| {
            let seen = seen.clone();
            let token = CancelToken::current();
            // A callback makes the timer thread cancel the token.
            let watched = token.on_cancel(|| {});
            future::poll_fn(move |context| {
                let _ = &watched;
                if token.is_cancelled() {
                    seen.open();
                }
                context.waker().wake_by_ref();
                Poll::<Served>::Pending
            })
        });
        let served = serve(&http(), service, with_ms(50));
        assert_eq!(served.status(), StatusCode::GATEWAY_TIMEOUT);
        assert!(seen_cancelled.is_open());
    }
}

/// The first poll comes after the deadline, as behind a queue; the service used to run anyway.
// Fails if the first poll takes place after the deadline.
#[test]
fn a_service_does_not_start_after_the_deadline() {
    fn begun() -> Served {
        panic!("the service was polled")
    }
    let drops = Drops::default();
    let kept = drops.clone();
    let service = service_fn(move |_| {
        let kept = kept.value();
        async move {
            let _kept = kept;
            begun()
        }
    });
    let served = http().layer(service).call(with_ms(short()));
    let late = Deadline::after(short_limit());
    while !late.has_passed() {
        thread::yield_now();
    }
    let status = block_on(served).map(|served| served.status());
    assert_eq!(status, Ok(StatusCode::GATEWAY_TIMEOUT));
    assert_eq!(drops.count(), 1);
}

/// A client that disconnects after the deadline does not change the cause.
#[test]
fn a_client_that_disconnects_late_does_not_change_the_cause() {
    for _ in 0..20 {
        let (sender, tokens) = channel();
        let service = service_fn(move |_| {
            let token = CancelToken::current();
            token.on_cancel(|| {}).forget();
            let _ = sender.send((token, CancelToken::current().child()));
            future::pending::<Served>()
        });
        let mut served = Box::pin(http().layer(service).call(with_ms(50)));
        let _ = support::poll_once(&mut served, &Gate::new());
        let (token, child) = tokens.recv().unwrap();
        let deadline = token.deadline();
        while !deadline.has_passed() {}
        drop(served);
        for token in [token, child] {
            assert_eq!(token.cause(), Some(Cause::DeadlineExceeded));
        }
    }
}

#[test]
fn a_service_is_dropped_before_its_response_is_sent() {
    let drops = Drops::default();
    let kept = drops.clone();
    let service = service_fn(move |_| {
        let kept = kept.value();
        async move {
            let _kept = kept;
            future::pending::<Served>().await
        }
    });
    let mut served = pin!(http().layer(service).call(with_ms(short())));
    let status = block_on(served.as_mut()).map(|served| served.status());
    assert_eq!(status, Ok(StatusCode::GATEWAY_TIMEOUT));
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_token_around_the_layer_cancels_the_service() {
    let (work, service) = Work::service();
    let runtime = runtime();
    let token = CancelToken::new();
    let context = CallContext::detached().with_token(&token);
    let served = http().layer(service).oneshot(with_ms(600_000));
    runtime.spawn(context.scope(served));
    work.wait_until_started();
    token.cancel();
    work.assert_cancelled(Cause::Cancelled);
}

/// The cause used to be `Cancelled`: the deadline had passed, but the timer thread had not
/// cancelled the token yet.
#[test]
fn a_late_response_cancels_remaining_operations_with_deadline_exceeded() {
    for _ in 0..20 {
        let (sender, tokens) = channel();
        let service = service_fn(move |_| {
            let token = CancelToken::current();
            token.on_cancel(|| {}).forget();
            let _ = sender.send(token);
            async {
                let deadline = Deadline::current();
                while !deadline.has_passed() {}
                Served::Ok(Response::new("late".to_owned()))
            }
        });
        let served = serve(&http(), service, with_ms(50));
        assert_eq!(served.status(), StatusCode::GATEWAY_TIMEOUT);
        let token = tokens.recv().unwrap();
        assert_eq!(token.cause(), Some(Cause::DeadlineExceeded));
    }
}

// Fails if the layer returns late responses.
#[test]
fn a_response_after_the_deadline_is_refused() {
    let service = service_fn(async |_| {
        until_past(&CancelToken::current());
        Served::Ok(Response::new("late".to_owned()))
    });
    let served = serve(&http(), service, with_ms(short()));
    assert_eq!(served.status(), StatusCode::GATEWAY_TIMEOUT);
}

// Fails if the guard of the request is not disarmed.
#[test]
fn a_response_in_time_cancels_nothing() {
    let (sender, contexts) = channel();
    let service = service_fn(move |_| {
        let _ = sender.send(CallContext::current());
        future::ready(Served::Ok(Response::new("done".to_owned())))
    });
    assert_eq!(serve(&http(), service, with_ms(600_000)).body(), "done");
    let context = contexts.recv().unwrap();
    assert_eq!(context.run(CancelToken::current).cause(), None);
    assert!(context.run(Deadline::current).remaining() > Some(FAR / 2));
}

#[test]
fn paused_time_drives_the_deadline() {
    let runtime = paused_runtime();
    runtime.block_on(async {
        let (sender, causes) = channel();
        let service = service_fn(move |_| {
            let sender = sender.clone();
            async move {
                let _ = call(sender, Gate::new()).await;
                future::pending::<Served>().await
            }
        });
        let start = tokio::time::Instant::now();
        let served = http().layer(service).oneshot(with_ms(60_000)).await;
        let status = served.map(|served| served.status());
        assert_eq!(status, Ok(StatusCode::GATEWAY_TIMEOUT));
        assert!(start.elapsed() >= Duration::from_secs(60));
        assert_eq!(causes.recv(), Ok(("call", Some(Cause::DeadlineExceeded))));
    });
}
