//! A client request sends the remaining time of its deadline; an expired request is not sent.

use crate::support;
use std::convert::Infallible;
use std::sync::mpsc::channel;
use std::time::Duration;

use http::{HeaderMap, HeaderName, Request, Response};
use support::{block_on, until_past};
use timeout_runtime::integrations::tower::{ClientError, ClientLayer, DeadlineHeader, ServerLayer};
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline, TimeoutError, timeout};
use tower::{Layer, Service, ServiceExt, service_fn};

const FAR: Duration = Duration::from_secs(600);

/// A client service that returns each request as it would be sent.
fn echo()
-> impl Service<Request<()>, Response = Request<()>, Error = ClientError<Infallible>, Future: Send>
+ Send {
    let network = service_fn(async |request: Request<()>| Ok(request));
    ClientLayer::new(DeadlineHeader::Grpc).layer(network)
}

fn within(limit: Duration) -> CallContext {
    CallContext::detached().with_deadline(Deadline::after(limit))
}

/// The request as the layer sends it for `request` inside `context`.
fn sent(
    context: &CallContext,
    request: Request<()>,
) -> Result<Request<()>, ClientError<Infallible>> {
    block_on(context.scope(echo().oneshot(request)))
}

/// The remaining time in the request's only deadline header.
#[track_caller]
fn encoded(headers: &HeaderMap) -> Duration {
    let encoded = DeadlineHeader::Grpc.read(headers);
    encoded
        .expect("the header is valid")
        .expect("the header is present")
}

/// A request that already has these header values.
fn with(values: &[&'static str]) -> Request<()> {
    let mut request = Request::new(());
    for value in values {
        let value = http::HeaderValue::from_static(value);
        request.headers_mut().append("grpc-timeout", value);
    }
    request
}

#[track_caller]
fn assert_about(encoded: Duration, limit: Duration) {
    assert!(
        encoded <= limit && encoded > limit / 2,
        "{encoded:?} of {limit:?}"
    );
}

#[test]
fn a_request_sends_the_remaining_time() {
    let sent = sent(&within(FAR), with(&[])).unwrap();
    assert_about(encoded(sent.headers()), FAR);
}

#[test]
fn a_request_inside_a_call_sends_the_calls_remaining_time() {
    #[timeout(name = "outer", secs = 600)]
    async fn outer() -> Result<HeaderMap, TimeoutError> {
        let sent = echo().oneshot(with(&[])).await;
        Ok(sent.expect("the request is sent").into_parts().0.headers)
    }

    assert_about(encoded(&block_on(outer()).unwrap()), FAR);
}

#[test]
fn a_request_without_a_deadline_is_unchanged() {
    let outside = CallContext::detached();
    let none = sent(&outside, with(&[])).unwrap();
    assert!(none.headers().is_empty());
    let own = sent(&outside, with(&["soon", "later"])).unwrap();
    assert_eq!(own.headers(), with(&["soon", "later"]).headers());
}

// Fails if the layer keeps, or overwrites, every header.
#[test]
fn an_existing_header_is_kept_if_it_is_shorter() {
    let shorter = sent(&within(FAR), with(&["5M"])).unwrap();
    assert_eq!(shorter.headers(), with(&["5M"]).headers());
    for more in [&["5H"][..], &["soon"], &["1M", "1M"], &["99999999H"]] {
        let sent = sent(&within(FAR), with(more)).unwrap();
        assert_about(encoded(sent.headers()), FAR);
    }
}

#[test]
fn the_requests_context_replaces_the_current_one() {
    let mut request = with(&[]);
    request.extensions_mut().insert(within(FAR / 10));
    let sooner = sent(&within(FAR), request).unwrap();
    assert_about(encoded(sooner.headers()), FAR / 10);

    let mut request = with(&[]);
    request.extensions_mut().insert(CallContext::detached());
    let free = sent(&within(FAR), request).unwrap();
    assert!(free.headers().is_empty());
}

/// A request with this context in its extensions.
fn carrying(context: CallContext) -> Request<()> {
    let mut request = with(&[]);
    request.extensions_mut().insert(context);
    request
}

/// The first layer used to remove the context, so the second layer sent another deadline or none.
// Fails if a layer removes the context from the request.
#[test]
fn stacked_layers_all_use_the_requests_context() {
    let millis = DeadlineHeader::Millis(HeaderName::from_static("time-left-ms"));
    let network = service_fn(async |request: Request<()>| Ok::<_, Infallible>(request));
    let client = ClientLayer::new(millis.clone()).layer(network);
    let client = ClientLayer::new(DeadlineHeader::Grpc).layer(client);
    let sent = |context: CallContext| {
        let sent = client.clone().oneshot(carrying(context));
        block_on(within(FAR).scope(sent)).expect("the request is sent")
    };

    let sooner = sent(within(FAR / 10));
    assert_about(encoded(sooner.headers()), FAR / 10);
    let read = millis.read(sooner.headers()).expect("the header is valid");
    assert_about(read.expect("the header is present"), FAR / 10);

    let free = sent(CallContext::detached());
    assert!(free.headers().is_empty());
}

/// A retry layer clones the request; the second attempt used to lose its context.
#[test]
fn a_cloned_request_keeps_its_context() {
    let network = service_fn(async |request: Request<()>| Ok::<_, Infallible>(request));
    let inner = ClientLayer::new(DeadlineHeader::Grpc).layer(network);
    let twice = service_fn(move |request: Request<()>| {
        let inner = inner.clone();
        async move {
            let first = inner.clone().oneshot(request.clone()).await?;
            // The clone, and the request that has already passed a layer of this kind.
            let again = inner.clone().oneshot(first.clone()).await?;
            let second = inner.oneshot(request).await?;
            Ok::<_, ClientError<Infallible>>([first, again, second])
        }
    });
    let outer = ClientLayer::new(DeadlineHeader::Envoy).layer(twice);
    let sent = block_on(outer.oneshot(carrying(within(FAR))));
    for sent in sent.expect("the request is sent") {
        assert_about(encoded(sent.headers()), FAR);
        let read = DeadlineHeader::Envoy.read(sent.headers());
        assert_about(
            read.expect("the header is valid")
                .expect("the header is present"),
            FAR,
        );
    }
}

#[test]
fn a_second_layer_refuses_a_request_that_expired_after_the_first() {
    let network = service_fn(async |_: Request<()>| -> Result<(), Infallible> {
        panic!("the request was sent")
    });
    let inner = ClientLayer::new(DeadlineHeader::Grpc).layer(network);
    let token = CancelToken::new();
    let canceller = token.clone();
    let slow = service_fn(move |request: Request<()>| {
        canceller.cancel();
        inner.clone().oneshot(request)
    });
    let outer = ClientLayer::new(DeadlineHeader::Envoy).layer(slow);
    let sent = block_on(outer.oneshot(carrying(within(FAR).with_token(&token))));
    let error = ClientError::NotSent(Cause::Cancelled);
    assert_eq!(sent, Err(ClientError::Service(error)));
}

/// A server layer removes the request's context: a forwarded request uses its own context instead
/// of the one of a client in the same process.
// Fails if the server layer does not remove the context from the request.
#[test]
fn a_context_of_the_request_ends_at_the_layer_of_a_server() {
    let (sender, sent) = channel();
    let service = service_fn(move |request: Request<()>| {
        let (client, sender) = (echo(), sender.clone());
        async move {
            let _ = sender.send(client.oneshot(request).await);
            Ok::<_, Infallible>(Response::new(String::new()))
        }
    });
    let server = ServerLayer::new(DeadlineHeader::Envoy);
    let server = server.at_most(FAR / 10).layer(service);
    let client = ClientLayer::new(DeadlineHeader::Envoy).layer(server);
    let response = block_on(client.oneshot(carrying(within(FAR))));
    assert!(response.is_ok_and(|response| response.status().is_success()));
    let sent = sent
        .try_recv()
        .expect("the service is called")
        .expect("the request is sent");
    assert_about(encoded(sent.headers()), FAR / 10);
}

/// The cause with which the layer refuses a request here.
fn refused() -> Cause {
    let network = service_fn(async |_: Request<()>| -> Result<(), Infallible> {
        panic!("the request was sent")
    });
    let client = ClientLayer::new(DeadlineHeader::Grpc).layer(network);
    match block_on(client.oneshot(with(&[]))) {
        Err(ClientError::NotSent(cause)) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_expired_request_is_not_sent() {
    assert_eq!(within(Duration::ZERO).run(refused), Cause::DeadlineExceeded);
    let error = sent(&within(Duration::ZERO), with(&["5M"])).unwrap_err();
    assert_eq!(error, ClientError::NotSent(Cause::DeadlineExceeded));
    assert_eq!(
        error.to_string(),
        "the request was not sent: its caller's deadline had passed"
    );
}

/// Such a request used to be sent: the deadline had passed, and the timer thread had not yet
/// cancelled the token.
// Fails if the layer checks the token only, and not the remaining time.
#[test]
fn a_request_that_expired_before_the_timer_ran_is_not_sent() {
    for _ in 0..20 {
        let context = within(Duration::from_millis(20));
        let cause = context.run(|| {
            // A callback makes the timer thread cancel the token.
            let _watched = CancelToken::current().on_cancel(|| {});
            let deadline = Deadline::current();
            while !deadline.has_passed() {}
            refused()
        });
        assert_eq!(cause, Cause::DeadlineExceeded);
    }
}

#[test]
fn a_timed_out_call_sends_no_request() {
    #[timeout(name = "over", ms = 1, run = "inline")]
    fn over(refusal: &mut Option<Cause>) -> Result<(), TimeoutError> {
        until_past(&cancel_token);
        *refusal = Some(refused());
        Ok(())
    }

    let mut refusal = None;
    assert!(over(&mut refusal).unwrap_err().is_timed_out());
    assert_eq!(refusal, Some(Cause::DeadlineExceeded));
}

// Fails if the layer does not check the token.
#[test]
fn a_cancelled_request_is_not_sent() {
    let token = CancelToken::new();
    token.cancel();
    assert_eq!(
        within(FAR).with_token(&token).run(refused),
        Cause::Cancelled
    );
}
