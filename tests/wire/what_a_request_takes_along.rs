//! Behind the layer of a server, operations on workers and in tasks have all that is their request's: deadline, token, runtime, span and what
//! propagators take along.

use crate::{support, tenant, wire};
use std::future;
use std::sync::Once;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use support::{Gate, SOON, runtime, short};
use tenant::{TENANT, propagate_tenant};
use timeout_runtime::integrations::tower::DeadlineHeader;
use timeout_runtime::integrations::tracing::propagate_spans;
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline, TimeoutError, timeout};
use tokio::runtime::Handle;
use tower::service_fn;
use tracing::span::Id;
use tracing::{Instrument, Span, info_span};
use wire::{HttpLayer, Served, answered, raw, serve, text};

const FAR: &str = "x-envoy-expected-rq-timeout-ms: 600000\r\n";

/// Has spans and the tenant go along, in the whole process.
fn integrate() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::registry();
        tracing::subscriber::set_global_default(subscriber).expect("there is no other");
        propagate_spans().forget();
        propagate_tenant();
    });
}

fn layer() -> HttpLayer {
    HttpLayer::http(DeadlineHeader::envoy())
}

/// What an operation finds around it.
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

#[test]
fn an_operation_has_its_requests_deadline_runtime_span_and_tenant() {
    integrate();
    let (sender, found) = channel();
    let service = service_fn(move |_| {
        let sender = sender.clone();
        let handler = async move {
            let _tenant = tenant::enter(7);
            let here = Span::current().id();
            let worker = on_worker().expect("it has time");
            // Its context is taken along at the first poll, which is this one.
            let mut task = Box::pin(as_task());
            let first = futures::poll!(&mut task);
            assert!(first.is_pending(), "it has a task to wait for");
            TENANT.set(8);
            let task = task.await.expect("it has time");
            let _ = sender.send((here, worker, task));
            Served::Ok(text("done"))
        };
        handler.instrument(info_span!("request"))
    });
    let runtime = runtime();
    let address = serve(&runtime, &layer(), service);
    let start = Instant::now();
    let answer = answered(address, FAR);
    let taken = start.elapsed();
    assert!(answer.ends_with("\r\n\r\ndone"), "{answer}");

    let (here, worker, task) = found.recv().expect("it was served");
    assert!(here.is_some());
    let name = worker.thread.as_deref().expect("workers are named");
    assert!(name.starts_with("timeout-"), "{name}");
    let told = Duration::from_secs(600);
    for found in [worker, task] {
        for left in [found.left, found.tokens] {
            let left = left.expect("there is a deadline");
            assert!(left <= told && left + taken >= told, "{found:?}");
        }
        assert_eq!(found.span, here, "{found:?}");
        assert_eq!((found.tenant, found.spawned), (7, 7), "{found:?}");
    }
}

#[test]
fn an_operation_without_a_header_has_no_deadline_but_its_own() {
    integrate();
    let (sender, found) = channel();
    let service = service_fn(move |_| {
        let _ = sender.send(on_worker());
        future::ready(Served::Ok(text("done")))
    });
    let runtime = runtime();
    let address = serve(&runtime, &layer(), service);
    answered(address, "");
    let found = found.recv().expect("it was served").expect("it has time");
    let left = found.left.expect("its own");
    assert!(left > Duration::from_secs(600), "{left:?}");
    assert_eq!((found.span, found.tenant), (None, 0));
}

type Causes = Sender<(&'static str, Option<Cause>)>;

#[timeout(name = "along::worker_until_told", secs = 60)]
fn worker_until_told(causes: Causes, started: Gate) -> Result<(), TimeoutError> {
    started.open();
    let _ = causes.send(("worker", cancel_token.wait_timeout(Duration::MAX)));
    cancel_token.check()
}

#[timeout(name = "along::task_until_told", secs = 60, run = "task")]
async fn task_until_told(causes: Causes, started: Gate) -> Result<(), TimeoutError> {
    started.open();
    cancel_token.cancelled().await;
    let _ = causes.send(("task", cancel_token.cause()));
    cancel_token.check()
}

/// Serves a request with these lines by both kinds of operations. When they have begun, the client leaves if it `leaves`; else it waits for its answer.
fn hear(lines: &str, leaves: bool) -> [(&'static str, Option<Cause>); 2] {
    let (sender, causes) = channel();
    let started: [Gate; 2] = Default::default();
    let gates = started.clone();
    let service = service_fn(move |_| {
        let [worker, task] = gates.clone();
        let (sender, context) = (sender.clone(), CallContext::current());
        let to_task = sender.clone();
        async move {
            // A sync call that parked the thread of the connection would have nobody see that the client leaves.
            thread::spawn(move || context.run(|| worker_until_told(sender, worker)));
            let _ = task_until_told(to_task, task).await;
            future::pending().await
        }
    });
    let runtime = runtime();
    let address = serve(&runtime, &layer(), service);
    let client = raw(address, lines);
    if leaves {
        started.iter().for_each(Gate::wait);
        drop(client);
    }
    let mut told = [(); 2].map(|()| causes.recv_timeout(SOON).expect("it is told"));
    told.sort_unstable_by_key(|(place, _)| *place);
    told
}

#[test]
fn an_operation_hears_that_its_client_has_left() {
    let cancelled = Some(Cause::Cancelled);
    assert_eq!(
        hear(FAR, true),
        [("task", cancelled), ("worker", cancelled)]
    );
    assert_eq!(hear("", true), [("task", cancelled), ("worker", cancelled)]);
}

#[test]
fn an_operation_hears_that_its_requests_time_is_up() {
    let short = format!("x-envoy-expected-rq-timeout-ms: {}\r\n", 3 * short());
    let exceeded = Some(Cause::DeadlineExceeded);
    assert_eq!(
        hear(&short, false),
        [("task", exceeded), ("worker", exceeded)]
    );
}
