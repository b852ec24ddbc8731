//! A request tells what is left of its caller's deadline, and is not sent when it would come too late.

use crate::support;
use std::convert::Infallible;
use std::sync::mpsc::channel;
use std::time::Duration;

use http::{HeaderMap, HeaderName, Request, Response};
use support::{block_on, until_past};
use timeout_runtime::integrations::tower::{
    ClientError, ClientLayer, DeadlineHeader, Refusal, ServerLayer,
};
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline, TimeoutError, timeout};
use tower::{Layer, Service, ServiceExt, service_fn};

const FAR: Duration = Duration::from_secs(600);

/// A client whose requests come back as they were sent.
fn echo()
-> impl Service<Request<()>, Response = Request<()>, Error = ClientError<Infallible>, Future: Send>
+ Send {
    let network = service_fn(async |request: Request<()>| Ok(request));
    ClientLayer::new(DeadlineHeader::grpc()).layer(network)
}

fn within(limit: Duration) -> CallContext {
    CallContext::detached().with_deadline(Deadline::after(limit))
}

/// What is sent for `request` inside `context`.
fn sent(
    context: &CallContext,
    request: Request<()>,
) -> Result<Request<()>, ClientError<Infallible>> {
    block_on(context.scope(echo().oneshot(request)))
}

/// What the one header tells.
#[track_caller]
fn told(headers: &HeaderMap) -> Duration {
    let told = DeadlineHeader::grpc().read(headers);
    told.expect("it can be read").expect("it is there")
}

/// A request with these headers of its own.
fn with(values: &[&'static str]) -> Request<()> {
    let mut request = Request::new(());
    for value in values {
        let value = http::HeaderValue::from_static(value);
        request.headers_mut().append("grpc-timeout", value);
    }
    request
}

#[track_caller]
fn assert_about(told: Duration, limit: Duration) {
    assert!(told <= limit && told > limit / 2, "{told:?} of {limit:?}");
}

#[test]
fn a_request_tells_what_is_left() {
    let sent = sent(&within(FAR), with(&[])).unwrap();
    assert_about(told(sent.headers()), FAR);
}

#[test]
fn a_request_inside_a_call_tells_what_is_left_of_that() {
    #[timeout(name = "outer", secs = 600)]
    async fn outer() -> Result<HeaderMap, TimeoutError> {
        let sent = echo().oneshot(with(&[])).await;
        Ok(sent.expect("it is sent").into_parts().0.headers)
    }

    assert_about(told(&block_on(outer()).unwrap()), FAR);
}

#[test]
fn a_request_without_a_deadline_is_sent_as_it_is() {
    let outside = CallContext::detached();
    let none = sent(&outside, with(&[])).unwrap();
    assert!(none.headers().is_empty());
    let own = sent(&outside, with(&["soon", "later"])).unwrap();
    assert_eq!(own.headers(), with(&["soon", "later"]).headers());
}

#[test]
fn a_header_that_is_there_counts_if_it_tells_less() {
    let shorter = sent(&within(FAR), with(&["5M"])).unwrap();
    assert_eq!(shorter.headers(), with(&["5M"]).headers());
    for more in [&["5H"][..], &["soon"], &["1M", "1M"], &["99999999H"]] {
        let sent = sent(&within(FAR), with(more)).unwrap();
        assert_about(told(sent.headers()), FAR);
    }
}

#[test]
fn a_context_of_the_request_takes_the_place_of_the_current_one() {
    let mut request = with(&[]);
    request.extensions_mut().insert(within(FAR / 10));
    let sooner = sent(&within(FAR), request).unwrap();
    assert_about(told(sooner.headers()), FAR / 10);

    let mut request = with(&[]);
    request.extensions_mut().insert(CallContext::detached());
    let free = sent(&within(FAR), request).unwrap();
    assert!(free.headers().is_empty());
}

/// A request that carries this context.
fn carrying(context: CallContext) -> Request<()> {
    let mut request = with(&[]);
    request.extensions_mut().insert(context);
    request
}

/// The first layer took the context out of the request, so the second one told another deadline or none.
#[test]
fn each_of_several_layers_sees_the_context_of_the_request() {
    let millis = DeadlineHeader::millis(HeaderName::from_static("time-left-ms"));
    let network = service_fn(async |request: Request<()>| Ok::<_, Infallible>(request));
    let client = ClientLayer::new(millis.clone()).layer(network);
    let client = ClientLayer::new(DeadlineHeader::grpc()).layer(client);
    let sent = |context: CallContext| {
        let sent = client.clone().oneshot(carrying(context));
        block_on(within(FAR).scope(sent)).expect("it is sent")
    };

    let sooner = sent(within(FAR / 10));
    assert_about(told(sooner.headers()), FAR / 10);
    let read = millis.read(sooner.headers()).expect("it can be read");
    assert_about(read.expect("it is there"), FAR / 10);

    let free = sent(CallContext::detached());
    assert!(free.headers().is_empty());
}

/// As a layer between the two does that tries again: the second attempt went out without the context.
#[test]
fn each_copy_of_a_request_carries_its_context() {
    let network = service_fn(async |request: Request<()>| Ok::<_, Infallible>(request));
    let inner = ClientLayer::new(DeadlineHeader::grpc()).layer(network);
    let twice = service_fn(move |request: Request<()>| {
        let inner = inner.clone();
        async move {
            let first = inner.clone().oneshot(request.clone()).await?;
            // The copy, and what has passed a layer of the same kind already.
            let again = inner.clone().oneshot(first.clone()).await?;
            let second = inner.oneshot(request).await?;
            Ok::<_, ClientError<Infallible>>([first, again, second])
        }
    });
    let outer = ClientLayer::new(DeadlineHeader::envoy()).layer(twice);
    let sent = block_on(outer.oneshot(carrying(within(FAR))));
    for sent in sent.expect("it is sent") {
        assert_about(told(sent.headers()), FAR);
        let read = DeadlineHeader::envoy().read(sent.headers());
        assert_about(read.expect("it can be read").expect("it is there"), FAR);
    }
}

#[test]
fn a_second_layer_does_not_send_what_has_expired_since_the_first() {
    let network =
        service_fn(async |_: Request<()>| -> Result<(), Infallible> { panic!("it was sent") });
    let inner = ClientLayer::new(DeadlineHeader::grpc()).layer(network);
    let token = CancelToken::new();
    let canceller = token.clone();
    let slow = service_fn(move |request: Request<()>| {
        canceller.cancel();
        inner.clone().oneshot(request)
    });
    let outer = ClientLayer::new(DeadlineHeader::envoy()).layer(slow);
    let sent = block_on(outer.oneshot(carrying(within(FAR).with_token(&token))));
    let error = ClientError::NotSent(Cause::Cancelled);
    assert_eq!(sent, Err(ClientError::Service(error)));
}

/// A service that sends the request on sends it in its own context, not in that of a client in the same process.
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
    let server: ServerLayer<fn(Refusal) -> Response<String>> =
        ServerLayer::http(DeadlineHeader::envoy());
    let server = server.at_most(FAR / 10).layer(service);
    let client = ClientLayer::new(DeadlineHeader::envoy()).layer(server);
    let answer = block_on(client.oneshot(carrying(within(FAR))));
    assert!(answer.is_ok_and(|answer| answer.status().is_success()));
    let sent = sent.try_recv().expect("it is called").expect("it is sent");
    assert_about(told(sent.headers()), FAR / 10);
}

/// Why a request is not sent here.
fn refused() -> Cause {
    let network =
        service_fn(async |_: Request<()>| -> Result<(), Infallible> { panic!("it was sent") });
    let client = ClientLayer::new(DeadlineHeader::grpc()).layer(network);
    match block_on(client.oneshot(with(&[]))) {
        Err(ClientError::NotSent(cause)) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_has_expired_is_not_sent() {
    assert_eq!(within(Duration::ZERO).run(refused), Cause::DeadlineExceeded);
    let error = sent(&within(Duration::ZERO), with(&["5M"])).unwrap_err();
    assert_eq!(error, ClientError::NotSent(Cause::DeadlineExceeded));
    assert_eq!(
        error.to_string(),
        "the request was not sent: its caller's deadline had passed"
    );
}

/// Guards against a deadline that has passed a few microseconds ago, of which the timer has told nobody yet.
#[test]
fn what_has_just_expired_is_not_sent() {
    for _ in 0..20 {
        let context = within(Duration::from_millis(20));
        let cause = context.run(|| {
            // So the token goes by the timer.
            let _watched = CancelToken::current().on_cancel(|| {});
            let deadline = Deadline::current();
            while !deadline.has_passed() {}
            refused()
        });
        assert_eq!(cause, Cause::DeadlineExceeded);
    }
}

#[test]
fn a_call_that_has_timed_out_sends_nothing_more() {
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

#[test]
fn what_is_cancelled_is_not_sent() {
    let token = CancelToken::new();
    token.cancel();
    assert_eq!(
        within(FAR).with_token(&token).run(refused),
        Cause::Cancelled
    );
}
