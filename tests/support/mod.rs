//! What the tests share: gates, recorded events, and the five ways to run an operation.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use timeout_runtime::{
    CancelToken, Event, EventKind, ListenerHandle, Outcome, Timeout, TimeoutError, add_listener,
};
use tokio::runtime::Runtime;

/// So long a test waits for what must come, before it fails.
pub const SOON: Duration = Duration::from_secs(20);

/// A door that is shut until somebody opens it.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    /// Waits until the gate is open; panics if that takes too long.
    #[track_caller]
    pub fn wait(&self) {
        let (open, opened) = &*self.0;
        let (_open, waited) = opened
            .wait_timeout_while(open.lock().unwrap(), SOON, |open| !*open)
            .unwrap();
        assert!(!waited.timed_out(), "the gate was never opened");
    }
}

/// The events of the calls of one name, in the order they were told.
pub struct Recorder {
    events: Arc<(Mutex<Vec<Event<'static>>>, Condvar)>,
    _listener: ListenerHandle,
}

/// Records the events of the calls named `name` from now on.
pub fn record(name: &'static str) -> Recorder {
    let events = Arc::<(Mutex<Vec<Event<'static>>>, Condvar)>::default();
    let sink = Arc::clone(&events);
    let listener = add_listener(move |event| {
        if event.name == name {
            sink.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(event.clone().into_owned());
            sink.1.notify_all();
        }
    });
    Recorder {
        events,
        _listener: listener,
    }
}

impl Recorder {
    /// What has been told so far.
    pub fn events(&self) -> Vec<Event<'static>> {
        self.events.0.lock().unwrap().clone()
    }

    pub fn kinds(&self) -> Vec<EventKind<'static>> {
        self.events().into_iter().map(|event| event.kind).collect()
    }

    /// Waits until `count` events have been told; panics if that takes too long.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<EventKind<'static>> {
        let (events, told) = &*self.events;
        let (_events, waited) = told
            .wait_timeout_while(events.lock().unwrap(), SOON, |events| events.len() < count)
            .unwrap();
        drop(_events);
        assert!(!waited.timed_out(), "only {:?} came", self.kinds());
        self.kinds()
    }
}

/// Where an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    SyncWorker,
    SyncInline,
    AsyncInline,
    AsyncTask,
    AsyncWorker,
}

pub const EVERY_WAY: [Way; 5] = [
    Way::SyncWorker,
    Way::SyncInline,
    Way::AsyncInline,
    Way::AsyncTask,
    Way::AsyncWorker,
];

impl Way {
    /// Whether the operation may outlive its call.
    pub fn abandons(self) -> bool {
        matches!(self, Self::SyncWorker | Self::AsyncTask | Self::AsyncWorker)
    }

    /// Runs an operation that blocks its thread this way. Async ways run inside a multi-thread runtime of the test's own, which is
    /// shut down without waiting.
    pub fn run<T, E>(
        self,
        timeout: &Timeout,
        op: impl FnOnce(CancelToken) -> Result<T, E> + Send + 'static,
    ) -> Outcome<T, E>
    where
        T: Send + 'static,
        E: Debug + Send + 'static,
    {
        let runtime = || {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap()
        };
        match self {
            Self::SyncWorker => timeout.outcome(op),
            Self::SyncInline => timeout.outcome_inline(op),
            Self::AsyncInline => finish(
                runtime(),
                timeout.outcome_async(|token| async { op(token) }),
            ),
            Self::AsyncTask => finish(runtime(), timeout.outcome_task(|token| async { op(token) })),
            Self::AsyncWorker => finish(
                runtime(),
                timeout.outcome_async_on_worker(|token| async { op(token) }),
            ),
        }
    }
}

fn finish<O>(runtime: Runtime, call: impl Future<Output = O>) -> O {
    let outcome = runtime.block_on(call);
    runtime.shutdown_background();
    outcome
}

/// A policy for a test.
pub fn limit(name: &'static str, ms: u64) -> Timeout {
    Timeout::new(name, Duration::from_millis(ms)).unwrap()
}

/// An operation that ends when its token fires, with the token's error.
pub fn until_fired(token: &CancelToken) -> Result<u32, TimeoutError> {
    token.sleep(Duration::MAX)?;
    unreachable!("a sleep without end has ended")
}

/// Waits until `holds`; panics if that takes too long.
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < SOON, "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
