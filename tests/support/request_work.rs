//! A service whose requests run operations of every kind.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::convert::Infallible;
use std::future;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use http::{Request, Response};
use timeout_runtime::{CallContext, CancelToken, Cause, TimeoutError, timeout};
use tower::{Service, service_fn};

use super::support::{Gate, SOON};

pub type Causes = Sender<(&'static str, Option<Cause>)>;

/// Sends the cause of its token when it is dropped.
struct SendsCause(Causes, CancelToken);

impl Drop for SendsCause {
    fn drop(&mut self) {
        let _ = self.0.send(("call", self.1.cause()));
    }
}

#[timeout(name = "call", secs = 600)]
pub async fn call(causes: Causes, started: Gate) -> Result<(), TimeoutError> {
    let _sends_cause = SendsCause(causes, cancel_token);
    started.open();
    future::pending().await
}

#[timeout(name = "worker", secs = 600, run = "worker")]
async fn worker(causes: Causes, started: Gate) -> Result<(), TimeoutError> {
    started.open();
    cancel_token.cancelled().await;
    let _ = causes.send(("worker", cancel_token.cause()));
    cancel_token.check()
}

async fn task(causes: Causes, started: Gate) {
    let token = CancelToken::current();
    started.open();
    token.cancelled().await;
    let _ = causes.send(("task", token.cause()));
}

fn thread(causes: &Causes, started: &Gate) {
    started.open();
    let cause = CancelToken::current().wait_timeout(SOON);
    let _ = causes.send(("thread", cause));
}

/// Operations of every kind for one request; none of them ends by itself.
pub struct Work {
    causes: Receiver<(&'static str, Option<Cause>)>,
    started: [Gate; 4],
}

impl Work {
    /// The operations, and the service that starts them.
    pub fn service() -> (
        Self,
        impl Service<Request<()>, Response = Response<String>, Error = Infallible, Future: Send>,
    ) {
        let (sender, causes) = channel();
        let started: [Gate; 4] = Default::default();
        let gates = started.clone();
        let service = service_fn(move |_| {
            let [a_task, a_thread, a_worker, a_call] = gates.clone();
            let sender = sender.clone();
            async move {
                let context = CallContext::current();
                tokio::spawn(context.scope(task(sender.clone(), a_task)));
                let causes = sender.clone();
                thread::spawn(move || context.run(|| thread(&causes, &a_thread)));
                let worker = worker(sender.clone(), a_worker);
                let _ = futures::join!(worker, call(sender, a_call));
                future::pending().await
            }
        });
        (Self { causes, started }, service)
    }

    pub fn wait_until_started(&self) {
        self.started.iter().for_each(Gate::wait);
    }

    /// Asserts that each operation is cancelled with `cause`.
    pub fn assert_cancelled(&self, cause: Cause) {
        let cause_of = || {
            self.causes
                .recv_timeout(SOON)
                .expect("the operation is cancelled")
        };
        let mut causes: Vec<_> = (0..4).map(|_| cause_of()).collect();
        causes.sort_unstable_by_key(|(place, _)| *place);
        let all = ["call", "task", "thread", "worker"];
        assert_eq!(causes, all.map(|place| (place, Some(cause))));
    }
}
