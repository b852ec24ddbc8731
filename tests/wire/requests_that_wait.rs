//! Requests that wait for a ready service: which part of the wait counts against their deadline.

use crate::support;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use http::{Request, Response, StatusCode};
use support::{SOON, paused_runtime};
use timeout_runtime::integrations::tower::{DeadlineHeader, ServerLayer};
use tokio::time::{Instant, sleep};
use tower::load_shed::error::Overloaded;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

type TextResponse = Response<String>;

/// Time that the service takes for each request, on a paused clock.
const WORK: Duration = Duration::from_secs(100);
/// Longer than one request, shorter than two.
const LIMIT: Duration = Duration::from_secs(150);

fn layer() -> ServerLayer {
    ServerLayer::new(DeadlineHeader::Envoy).at_most(LIMIT)
}

/// A service that handles one request at a time for `WORK`, and the number of requests it received.
fn one_at_a_time() -> (
    impl Service<Request<()>, Response = TextResponse, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static,
    Arc<AtomicUsize>,
) {
    let reached = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reached);
    let service = service_fn(move |_: Request<()>| {
        count.fetch_add(1, Ordering::Relaxed);
        async {
            sleep(WORK).await;
            Ok::<_, Infallible>(Response::new("done".to_owned()))
        }
    });
    let limited = ServiceBuilder::new().concurrency_limit(1).service(service);
    (limited, reached)
}

/// The status of each response, and the second at which it arrived.
async fn ask_all<S, B>(service: S, requests: Vec<Request<()>>) -> Vec<(StatusCode, u64)>
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible> + Clone,
{
    let start = Instant::now();
    let responses = requests.into_iter().map(|request| {
        let response = service.clone().oneshot(request);
        async move {
            let response = response.await.unwrap_or_else(|never| match never {});
            (response.status(), start.elapsed().as_secs())
        }
    });
    join_all(responses).await
}

fn plain(count: usize) -> Vec<Request<()>> {
    (0..count).map(|_| Request::new(())).collect()
}

/// The layer does not see a request before it is called, as documented at `ServerLayer`.
#[test]
fn waiting_for_a_ready_service_is_not_counted_by_default() {
    paused_runtime().block_on(async {
        let (service, reached) = one_at_a_time();
        let responses = ask_all(layer().layer(service), plain(3)).await;
        let ok = StatusCode::OK;
        assert_eq!(responses, [(ok, 100), (ok, 200), (ok, 300)]);
        assert_eq!(reached.load(Ordering::Relaxed), 3);
    });
}

/// All ten requests used to run; the last one finished after 1000 seconds.
// Fails if the wait is not counted, or if a service is called at the deadline.
#[test]
fn a_layer_that_counts_waiting_includes_the_wait() {
    paused_runtime().block_on(async {
        let (service, reached) = one_at_a_time();
        let layer = layer().count_waiting();
        let mut responses = ask_all(layer.layer(service), plain(10)).await;
        assert_eq!(responses.remove(0), (StatusCode::OK, 100));
        // The second request was running; the others were still waiting.
        assert_eq!(responses, [(StatusCode::GATEWAY_TIMEOUT, 150); 9]);
        assert_eq!(reached.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn a_request_that_expires_while_waiting_does_not_reach_the_service() {
    paused_runtime().block_on(async {
        let (service, reached) = one_at_a_time();
        let requests = ["140000", "60000", "140000"].map(|left| {
            let request = Request::get("/").header("x-envoy-expected-rq-timeout-ms", left);
            request.body(()).expect("a request")
        });
        let layer = layer().count_waiting();
        let responses = ask_all(layer.layer(service), requests.into()).await;
        let late = StatusCode::GATEWAY_TIMEOUT;
        assert_eq!(responses, [(StatusCode::OK, 100), (late, 60), (late, 140)]);
        assert_eq!(reached.load(Ordering::Relaxed), 2);
    });
}

/// Sends a request to a service that has been ready for a long time.
async fn ask_later<S, B>(mut service: S)
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    let first = tokio::spawn(service.clone().oneshot(Request::new(())));
    sleep(WORK / 2).await;
    let ready = service.ready().await;
    let ready = ready.unwrap_or_else(|never| match never {});
    sleep(LIMIT * 2).await;
    let response = ready.call(Request::new(())).await;
    assert_eq!(
        response.map(|response| response.status()),
        Ok(StatusCode::OK)
    );
    assert!(first.await.is_ok_and(|response| response.is_ok()));
}

/// The limit used to start when the server polled the service for readiness.
#[test]
fn the_limit_starts_when_the_request_arrives() {
    paused_runtime().block_on(async {
        ask_later(layer().layer(one_at_a_time().0)).await;
        ask_later(layer().count_waiting().layer(one_at_a_time().0)).await;
    });
}

/// Load shedding around the limit refuses requests that would wait, as documented.
#[test]
fn load_shedding_keeps_requests_from_waiting() {
    paused_runtime().block_on(async {
        let (sheds, reached) = one_at_a_time();
        let service = ServiceBuilder::new()
            .load_shed()
            .layer(layer())
            .service(sheds);
        let first = tokio::spawn(service.clone().oneshot(Request::new(())));
        sleep(WORK / 2).await;
        let start = Instant::now();
        let second = service.oneshot(Request::new(())).await;
        let error: BoxError = second.map(drop).expect_err("the request would wait");
        assert!(error.is::<Overloaded>(), "{error}");
        assert!(start.elapsed() < SOON);
        assert!(first.await.is_ok_and(|response| response.is_ok()));
        assert_eq!(reached.load(Ordering::Relaxed), 1);
    });
}
