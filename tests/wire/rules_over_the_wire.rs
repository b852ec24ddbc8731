//! The rules of nested calls hold between client and server: one outcome with its own cause for
//! each call, and nothing starts late.

use crate::{support, wire};
use std::convert::Infallible;
use std::future;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use http::{Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use support::{Gate, LONG, SOON, Way, block_on, limit, record, runtime, short, until_cancelled};
use timeout_runtime::integrations::tower::{DeadlineHeader, ServerLayer};
use timeout_runtime::{CallContext, CallStatus, Cause, EventKind, Outcome, TimeoutError, timeout};
use tokio::runtime::{Handle, Runtime};
use tower::{BoxError, Service, ServiceExt, service_fn};
use wire::{Body, Served, client, raw, request, response_to, serve, text, uri};

const FAR: &str = "x-envoy-expected-rq-timeout-ms: 600000\r\n";

/// All places except sync inline, which would block the service.
const WAYS: [Way; 4] = [
    Way::SyncWorker,
    Way::AsyncInline,
    Way::AsyncTask,
    Way::AsyncWorker,
];

fn short_header() -> String {
    format!("x-envoy-expected-rq-timeout-ms: {}\r\n", short())
}

fn serve_http<S>(runtime: &Runtime, service: S) -> SocketAddr
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
{
    serve(runtime, &ServerLayer::new(DeadlineHeader::Envoy), service)
}

/// A call whose operation runs until it is cancelled.
async fn work(way: Way, name: &'static str, started: Gate) -> Outcome<u32, TimeoutError> {
    let policy = limit(name, LONG);
    if way == Way::SyncWorker {
        return policy.outcome(move |token| {
            started.open();
            until_cancelled(&token)
        });
    }
    let call = way.start(&policy, |token| async move {
        started.open();
        token.cancelled().await;
        token.check().map(|()| 0)
    });
    call.await
}

/// The response status that the client receives when its deadline passes.
#[timeout(name = "wire::caller", ms = short(), run = "task")]
async fn caller(uri: Uri) -> Result<StatusCode, BoxError> {
    let response = client(DeadlineHeader::Envoy).oneshot(request(&uri));
    Ok(response.await.map_err(Into::into)?.status())
}

/// The call that owns the limit times out; the server's nested call exceeds its deadline. The
/// client's operation stays running, which keeps the connection open.
// Fails if the layer does not enter the deadline around the service.
#[test]
fn a_caller_times_out_and_the_servers_call_exceeds_its_deadline() {
    let runtime = runtime();
    for way in WAYS {
        let (callers, works) = (record("wire::caller"), record("wire::work"));
        let (sender, outcomes) = channel();
        let service = service_fn(move |_| {
            let sender = sender.clone();
            async move {
                let _ = sender.send(work(way, "wire::work", Gate::new()).await);
                future::pending::<Served>().await
            }
        });
        let address = serve_http(&runtime, service);
        let error = runtime.block_on(caller(uri(address))).unwrap_err();
        let error = error.downcast::<TimeoutError>().expect("a TimeoutError");
        assert_eq!(error.status(), CallStatus::TimedOut);

        let outcome = outcomes.recv_timeout(SOON).expect("the call ends");
        assert_eq!(outcome.status(), CallStatus::DeadlineExceeded, "{way:?}");
        // The server's timeout response was late itself.
        assert_eq!(
            callers.wait_for(2),
            [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded]
        );
        let outcomes = outcome_events(&works.kinds());
        assert_eq!(outcomes, [EventKind::DeadlineExceeded], "{way:?}");
    }
}

fn outcome_events(kinds: &[EventKind<'static>]) -> Vec<EventKind<'static>> {
    let events = kinds.iter().filter(|kind| !support::is_late(kind));
    events.cloned().collect()
}

#[timeout(name = "wire::late", secs = 60)]
fn late() -> Result<(), TimeoutError> {
    panic!("the operation was started")
}

#[timeout(name = "wire::late_async", secs = 60)]
async fn late_async() -> Result<(), TimeoutError> {
    panic!("the operation was started")
}

#[timeout(name = "wire::cleanup", secs = 60, inherit = false)]
fn cleanup(done: Sender<&'static str>) -> Result<(), TimeoutError> {
    cancel_token.check()?;
    let _ = done.send("cleanup");
    Ok(())
}

#[timeout(name = "wire::detached", secs = 60)]
fn detached(done: Sender<&'static str>) -> Result<(), TimeoutError> {
    cancel_token.check()?;
    let _ = done.send("detached");
    Ok(())
}

/// Makes the calls that are allowed after the request has ended, and one that is not.
fn afterwards(done: &Sender<&'static str>) -> Cause {
    let refused = late().unwrap_err();
    assert_eq!(refused.status(), CallStatus::NotStarted);
    cleanup(done.clone()).expect("`inherit = false` ignores the request's deadline");
    let detached = CallContext::detached().run(|| detached(done.clone()));
    detached.expect("a detached context ignores it too");
    refused.cause()
}

#[test]
fn only_cleanup_starts_after_a_requests_deadline() {
    let (sender, done) = channel();
    let (causes, received) = channel();
    let service = service_fn(move |_| {
        let (sender, causes) = (sender.clone(), causes.clone());
        async move {
            let outcome = work(Way::AsyncInline, "wire::before", Gate::new()).await;
            assert_eq!(outcome.status(), CallStatus::DeadlineExceeded);
            let refused = late_async().await.unwrap_err();
            assert_eq!(refused.status(), CallStatus::NotStarted);
            let _ = causes.send((refused.cause(), afterwards(&sender)));
            Served::Ok(text("late"))
        }
    });
    let runtime = runtime();
    let address = serve_http(&runtime, service);
    let response = response_to(address, short_header());
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    let exceeded = Cause::DeadlineExceeded;
    assert_eq!(received.recv_timeout(SOON), Ok((exceeded, exceeded)));
    let done = [(); 2].map(|()| done.recv_timeout(SOON));
    assert_eq!(done, [Ok("cleanup"), Ok("detached")]);
}

/// Calls `afterwards` when it is dropped.
struct Afterwards(Sender<&'static str>, Sender<Cause>);

impl Drop for Afterwards {
    fn drop(&mut self) {
        let _ = self.1.send(afterwards(&self.0));
    }
}

// Fails if a future is dropped outside its context.
#[test]
fn only_cleanup_starts_after_a_client_disconnects() {
    let (sender, done) = channel();
    let (causes, received) = channel();
    let started = Gate::new();
    let gate = started.clone();
    let service = service_fn(move |_| {
        let kept = Afterwards(sender.clone(), causes.clone());
        let gate = gate.clone();
        async move {
            let _kept = kept;
            gate.open();
            future::pending::<Served>().await
        }
    });
    let runtime = runtime();
    let address = serve_http(&runtime, service);
    let client = raw(address, FAR);
    started.wait();
    drop(client);
    assert_eq!(received.recv_timeout(SOON), Ok(Cause::Cancelled));
    let done = [(); 2].map(|()| done.recv_timeout(SOON));
    assert_eq!(done, [Ok("cleanup"), Ok("detached")]);
}

/// The calls run on the service's own threads, which continue when the service is dropped.
// Fails if the layer does not enter the token around the service, or disarms its guard too early.
#[test]
fn calls_of_a_disconnected_client_are_cancelled_once() {
    let runtime = runtime();
    for way in WAYS {
        let works = record("wire::orphan");
        let (sender, outcomes) = channel();
        let started = Gate::new();
        let gate = started.clone();
        let service = service_fn(move |_| {
            let (sender, gate) = (sender.clone(), gate.clone());
            let (handle, context) = (Handle::current(), CallContext::current());
            thread::spawn(move || {
                let _inside = handle.enter();
                let outcome = context.run(|| block_on(work(way, "wire::orphan", gate)));
                let _ = sender.send(outcome);
            });
            future::pending::<Served>()
        });
        let address = serve_http(&runtime, service);
        let client = raw(address, FAR);
        started.wait();
        drop(client);
        let outcome = outcomes.recv_timeout(SOON).expect("the call ends");
        assert_eq!(outcome.status(), CallStatus::UpstreamCancelled, "{way:?}");
        let outcomes = outcome_events(&works.kinds());
        assert_eq!(outcomes, [EventKind::Cancelled], "{way:?}");
    }
}

/// Calls that the service itself awaits are dropped with it; their operations are cancelled.
#[test]
fn calls_dropped_with_their_service_have_one_outcome() {
    let runtime = runtime();
    for way in [Way::AsyncInline, Way::AsyncTask, Way::AsyncWorker] {
        let works = record("wire::dropped");
        let (sender, causes) = channel();
        let started = Gate::new();
        let gate = started.clone();
        let service = service_fn(move |_| {
            let (sender, gate) = (sender.clone(), gate.clone());
            let call = way.start(&limit("wire::dropped", LONG), |token| async move {
                let kept = token.clone();
                let send = move || {
                    let _ = sender.send(kept.cause());
                };
                token.on_cancel(send).forget();
                gate.open();
                token.cancelled().await;
                token.check()
            });
            async move {
                let _ = call.await;
                future::pending::<Served>().await
            }
        });
        let address = serve_http(&runtime, service);
        let client = raw(address, FAR);
        started.wait();
        drop(client);
        assert_eq!(causes.recv_timeout(SOON), Ok(Some(Cause::Cancelled)));
        let kinds = works.wait_for(1 + usize::from(way.abandons()));
        assert_eq!(outcome_events(&kinds), [EventKind::Dropped], "{way:?}");
        let late = kinds.get(1);
        let has_stopped = matches!(late, Some(EventKind::AbandonedWorkerStopped(_)));
        assert_eq!(has_stopped, way.abandons(), "{way:?}: {kinds:?}");
    }
}

#[test]
fn a_result_after_the_requests_end_is_reported_once() {
    let works = record("wire::stubborn");
    let (responds, end) = (Gate::new(), Gate::new());
    let gates = (responds.clone(), end.clone());
    let service = service_fn(move |_| {
        let (responds, end) = gates.clone();
        let call = Way::AsyncWorker.start(&limit("wire::stubborn", LONG), move |_| async move {
            responds.wait();
            Ok::<_, TimeoutError>(7)
        });
        async move {
            let outcome = call.await;
            assert_eq!(outcome.status(), CallStatus::DeadlineExceeded);
            end.open();
            Served::Ok(text("late"))
        }
    });
    let runtime = runtime();
    let address = serve_http(&runtime, service);
    let response = response_to(address, short_header());
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    end.wait();
    assert_eq!(works.kinds(), [EventKind::DeadlineExceeded]);
    responds.open();
    assert_eq!(
        works.wait_for(2),
        [
            EventKind::DeadlineExceeded,
            EventKind::AbandonedWorkerSucceeded
        ]
    );
}
