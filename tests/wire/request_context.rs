//! Behind a server layer, operations on workers and in tasks inherit their request's deadline,
//! token, runtime, span and the values of context propagators.

use crate::{support, tenant, wire};
use std::future;
use std::sync::Once;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use support::{Gate, SOON, runtime, short};
use tenant::{TENANT, propagate_tenant};
use timeout_runtime::integrations::tower::{DeadlineHeader, ServerLayer};
use timeout_runtime::integrations::tracing::propagate_spans;
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline, TimeoutError, timeout};
use tokio::runtime::Handle;
use tower::service_fn;
use tracing::span::Id;
use tracing::{Instrument, Span, info_span};
use wire::{Served, raw, response_to, serve, text};

const FAR: &str = "x-envoy-expected-rq-timeout-ms: 600000\r\n";

/// Enables span and tenant propagation for the whole process.
fn integrate() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::registry();
        tracing::subscriber::set_global_default(subscriber).expect("the first global subscriber");
        propagate_spans().forget();
        propagate_tenant();
    });
}

fn layer() -> ServerLayer {
    ServerLayer::new(DeadlineHeader::Envoy)
}

/// The context that an operation runs in.
#[derive(Debug)]
struct Found {
    thread: Option<String>,
    left: Option<Duration>,
    tokens: Option<Duration>,
    span: Option<Id>,
    tenant: u32,
    spawned: u32,
}

impl Found {
    fn here(token: &CancelToken, spawned: u32) -> Self {
        Self {
            thread: thread::current().name().map(str::to_owned),
            left: Deadline::current().remaining(),
            tokens: token.deadline().remaining(),
            span: Span::current().id(),
            tenant: TENANT.get(),
            spawned,
        }
    }
}

#[timeout(name = "along::on_worker", secs = 3600)]
fn on_worker() -> Result<Found, TimeoutError> {
    let handle = Handle::current();
    let spawned = handle.block_on(handle.spawn(async { 7 }));
    Ok(Found::here(&cancel_token, spawned.expect("no panic")))
}

#[timeout(name = "along::as_task", secs = 3600, run = "task")]
async fn as_task() -> Result<Found, TimeoutError> {
    let spawned = Handle::current().spawn(async { 7 }).await;
    Ok(Found::here(&cancel_token, spawned.expect("no panic")))
}

// Fails if the layer does not enter the deadline around the service.
#[test]
fn an_operation_inherits_its_requests_deadline_runtime_span_and_tenant() {
    integrate();
    let (sender, found) = channel();
    let service = service_fn(move |_| {
        let sender = sender.clone();
        let handler = async move {
            let _tenant = tenant::enter(7);
            let here = Span::current().id();
            let worker = on_worker().expect("within its limit");
            // The first poll captures its context.
            let mut task = Box::pin(as_task());
            let first = futures::poll!(&mut task);
            assert!(first.is_pending(), "the spawned task is not done");
            TENANT.set(8);
            let task = task.await.expect("within its limit");
            let _ = sender.send((here, worker, task));
            Served::Ok(text("done"))
        };
        handler.instrument(info_span!("request"))
    });
    let runtime = runtime();
    let address = serve(&runtime, &layer(), service);
    let start = Instant::now();
    let response = response_to(address, FAR);
    let taken = start.elapsed();
    assert!(response.ends_with("\r\n\r\ndone"), "{response}");

    let (here, worker, task) = found.recv().expect("the request was served");
    assert!(here.is_some());
    let name = worker.thread.as_deref().expect("workers are named");
    assert!(name.starts_with("timeout-"), "{name}");
    let sent = Duration::from_secs(600);
    for found in [worker, task] {
        for left in [found.left, found.tokens] {
            let left = left.expect("a deadline");
            assert!(left <= sent && left + taken >= sent, "{found:?}");
        }
        assert_eq!(found.span, here, "{found:?}");
        assert_eq!((found.tenant, found.spawned), (7, 7), "{found:?}");
    }
}

#[test]
fn an_operation_of_a_request_without_header_has_only_its_own_deadline() {
    integrate();
    let (sender, found) = channel();
    let service = service_fn(move |_| {
        let _ = sender.send(on_worker());
        future::ready(Served::Ok(text("done")))
    });
    let runtime = runtime();
    let address = serve(&runtime, &layer(), service);
    response_to(address, "");
    let found = found
        .recv()
        .expect("the request was served")
        .expect("within its limit");
    let left = found.left.expect("its own deadline");
    assert!(left > Duration::from_secs(600), "{left:?}");
    assert_eq!((found.span, found.tenant), (None, 0));
}

type Causes = Sender<(&'static str, Option<Cause>)>;

#[timeout(name = "along::worker_until_cancelled", secs = 60)]
fn worker_until_cancelled(causes: Causes, started: Gate) -> Result<(), TimeoutError> {
    started.open();
    let _ = causes.send(("worker", cancel_token.wait_timeout(Duration::MAX)));
    cancel_token.check()
}

#[timeout(name = "along::task_until_cancelled", secs = 60, run = "task")]
async fn task_until_cancelled(causes: Causes, started: Gate) -> Result<(), TimeoutError> {
    started.open();
    cancel_token.cancelled().await;
    let _ = causes.send(("task", cancel_token.cause()));
    cancel_token.check()
}

/// Serves a request with these header lines by both kinds of operations. When they have started,
/// the client disconnects if `disconnects`, and waits for the response.
fn causes_of(lines: &str, disconnects: bool) -> [(&'static str, Option<Cause>); 2] {
    let (sender, causes) = channel();
    let started: [Gate; 2] = Default::default();
    let gates = started.clone();
    let service = service_fn(move |_| {
        let [worker, task] = gates.clone();
        let (sender, context) = (sender.clone(), CallContext::current());
        let to_task = sender.clone();
        async move {
            // A sync call would block the connection's thread, which could not detect that the
            // client disconnects.
            thread::spawn(move || context.run(|| worker_until_cancelled(sender, worker)));
            let _ = task_until_cancelled(to_task, task).await;
            future::pending::<Served>().await
        }
    });
    let runtime = runtime();
    let address = serve(&runtime, &layer(), service);
    let client = raw(address, lines);
    if disconnects {
        started.iter().for_each(Gate::wait);
        drop(client);
    }
    let mut received = [(); 2].map(|()| {
        causes
            .recv_timeout(SOON)
            .expect("the operation is cancelled")
    });
    received.sort_unstable_by_key(|(place, _)| *place);
    received
}

#[test]
fn a_disconnected_client_cancels_operations_on_workers_and_in_tasks() {
    let cancelled = Some(Cause::Cancelled);
    assert_eq!(
        causes_of(FAR, true),
        [("task", cancelled), ("worker", cancelled)]
    );
    assert_eq!(
        causes_of("", true),
        [("task", cancelled), ("worker", cancelled)]
    );
}

#[test]
fn a_requests_deadline_cancels_operations_on_workers_and_in_tasks() {
    let short = format!("x-envoy-expected-rq-timeout-ms: {}\r\n", 3 * short());
    let exceeded = Some(Cause::DeadlineExceeded);
    assert_eq!(
        causes_of(&short, false),
        [("task", exceeded), ("worker", exceeded)]
    );
}
