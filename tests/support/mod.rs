//! Shared helpers: gates, recorded events, and the five places where an operation runs.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::env;
use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread, ThreadId};
use std::time::{Duration, Instant};

use timeout_runtime::{
    CancelToken, Event, EventKind, Outcome, Registration, Timeout, TimeoutError, add_listener,
};
use tokio::runtime::Runtime;

/// A limit in milliseconds that does not pass during a call.
pub const LONG: u64 = 60_000;

/// The time after which a wait of a test fails.
pub const SOON: Duration = Duration::from_secs(40);

/// A limit in milliseconds that an operation can start within, also on a busy machine: a multiple
/// of the time that this machine needs to start a thread.
pub fn short() -> u64 {
    static SHORT: LazyLock<u64> = LazyLock::new(|| {
        let start_a_thread = |_| {
            let start = Instant::now();
            thread::spawn(|| {}).join().unwrap();
            start.elapsed()
        };
        let longest = (0..20).map(start_a_thread).max().unwrap_or_default();
        u64::try_from(longest.as_millis()).map_or(200, |ms| (20 * ms).clamp(200, 10_000))
    });
    *SHORT
}

/// [`short`] as a duration.
pub fn short_limit() -> Duration {
    Duration::from_millis(short())
}

/// A time after which that limit has passed, also by the coarse clock that times calls without
/// listeners whose limit is a second or more.
pub fn past_short() -> Duration {
    short_limit() + Duration::from_millis(if short() < 1000 { 5 } else { 150 })
}

/// The number of rounds of a stress test: `some`, or `all` with the environment variable
/// `TIMEOUT_TEST_ALL_ROUNDS`.
pub fn rounds(some: usize, all: usize) -> usize {
    if env::var_os("TIMEOUT_TEST_ALL_ROUNDS").is_some() {
        all
    } else {
        some
    }
}

/// A gate that stays closed until it is opened.
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

    pub fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap()
    }

    /// A waker that opens the gate.
    pub fn waker(&self) -> Waker {
        Arc::new(self.clone()).into()
    }

    /// Waits until the gate is open. Panics after [`SOON`].
    #[track_caller]
    pub fn wait(&self) {
        let (open, opened) = &*self.0;
        let (_open, waited) = opened
            .wait_timeout_while(open.lock().unwrap(), SOON, |open| !*open)
            .unwrap();
        assert!(!waited.timed_out(), "the gate was never opened");
    }
}

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        self.open();
    }
}

/// A value that records the thread on which it is dropped.
#[derive(Debug)]
pub struct Tracked(Drops);

/// Runs a closure when it is dropped.
pub struct OnDrop<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<F: FnMut()> Debug for OnDrop<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("OnDrop")
    }
}

/// The names of the threads on which tracked values were dropped.
#[derive(Clone, Debug, Default)]
pub struct Drops(Arc<Mutex<Vec<String>>>);

impl Drops {
    pub fn value(&self) -> Tracked {
        Tracked(self.clone())
    }

    pub fn threads(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.threads().len()
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let name = thread::current().name().unwrap_or("unnamed").to_owned();
        self.0.0.lock().unwrap().push(name);
    }
}

/// The names that tests use alone, each with the thread of its test, once for each [`Alone`].
static USED_ALONE: Mutex<Vec<(&'static str, ThreadId)>> = Mutex::new(Vec::new());
static NAME_FREED: Condvar = Condvar::new();

/// Keeps other tests from making calls of one name.
pub struct Alone(&'static str, ThreadId);

/// Waits until no other test uses calls named `name`. For tests that share functions, and that read
/// the events of these.
pub fn alone(name: &'static str) -> Alone {
    let me = thread::current().id();
    let is_taken = |used: &mut Vec<(&'static str, ThreadId)>| {
        used.iter().any(|(taken, by)| *taken == name && *by != me)
    };
    let used = USED_ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let used = NAME_FREED.wait_while(used, is_taken);
    used.unwrap_or_else(PoisonError::into_inner)
        .push((name, me));
    Alone(name, me)
}

impl Drop for Alone {
    fn drop(&mut self) {
        let mut used = USED_ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = (self.0, self.1);
        if let Some(place) = used.iter().position(|place| *place == mine) {
            used.swap_remove(place);
        }
        NAME_FREED.notify_all();
    }
}

/// The events of all calls of one name, in the order of their emission.
pub struct Recorder {
    events: Arc<(Mutex<Vec<Event<'static>>>, Condvar)>,
    _listener: Registration,
    _alone: Alone,
}

/// Records the events of the calls named `name` from now on. Waits until no other test records
/// them.
pub fn record(name: &'static str) -> Recorder {
    let alone = alone(name);
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
        _alone: alone,
    }
}

impl Recorder {
    /// The events emitted so far.
    pub fn events(&self) -> Vec<Event<'static>> {
        self.events.0.lock().unwrap().clone()
    }

    pub fn kinds(&self) -> Vec<EventKind<'static>> {
        self.events().into_iter().map(|event| event.kind).collect()
    }

    /// Waits until `count` events have been emitted. Panics after [`SOON`].
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<EventKind<'static>> {
        let (events, emitted) = &*self.events;
        let (events, waited) = emitted
            .wait_timeout_while(events.lock().unwrap(), SOON, |events| events.len() < count)
            .unwrap();
        drop(events);
        assert!(
            !waited.timed_out(),
            "only these events were emitted: {:?}",
            self.kinds()
        );
        self.kinds()
    }
}

/// Whether the event reports the late end of an abandoned operation, not the outcome of its call.
pub fn is_late(kind: &EventKind<'_>) -> bool {
    matches!(
        kind,
        EventKind::AbandonedWorkerSucceeded
            | EventKind::AbandonedWorkerStopped(_)
            | EventKind::AbandonedWorkerFailed(_)
    )
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

/// The places where the operation may outlive its call.
pub const ABANDONING: [Way; 3] = [Way::SyncWorker, Way::AsyncTask, Way::AsyncWorker];

/// The places where a success after the wait is late: all but a poll in place.
pub const TIMED: [Way; 4] = [
    Way::SyncWorker,
    Way::SyncInline,
    Way::AsyncTask,
    Way::AsyncWorker,
];

pub const ASYNC: [Way; 3] = [Way::AsyncInline, Way::AsyncTask, Way::AsyncWorker];

type BoxedOp<R> = Box<dyn FnOnce(CancelToken) -> R + Send>;

type BoxedFuture<O> = Pin<Box<dyn Future<Output = O> + Send>>;

impl Way {
    /// Whether the operation may outlive its call.
    pub fn abandons(self) -> bool {
        ABANDONING.contains(&self)
    }

    /// Runs an operation that blocks its thread in this place. Async calls run inside a runtime of
    /// their own.
    pub fn run<T, E>(
        self,
        timeout: &Timeout,
        op: impl FnOnce(CancelToken) -> Result<T, E> + Send + 'static,
    ) -> Outcome<T, E>
    where
        T: Send + 'static,
        E: Debug + Send + 'static,
    {
        self.run_boxed(timeout, Box::new(op))
    }

    /// Boxes let the compiler generate one call for all operations with these types, not one for
    /// each operation.
    fn run_boxed<T, E>(self, timeout: &Timeout, op: BoxedOp<Result<T, E>>) -> Outcome<T, E>
    where
        T: Send + 'static,
        E: Debug + Send + 'static,
    {
        match self {
            Self::SyncWorker => timeout.outcome(op),
            Self::SyncInline => timeout.inline().outcome(op),
            _ => in_runtime(self.start(timeout, |token| async { op(token) })),
        }
    }

    /// The future of an async call, not polled yet.
    pub fn start<T, E, F>(
        self,
        timeout: &Timeout,
        op: impl FnOnce(CancelToken) -> F + Send + 'static,
    ) -> BoxedFuture<Outcome<T, E>>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Debug + Send + 'static,
    {
        self.start_boxed(timeout, Box::new(|token| Box::pin(op(token))))
    }

    fn start_boxed<T, E>(
        self,
        timeout: &Timeout,
        op: BoxedOp<BoxedFuture<Result<T, E>>>,
    ) -> BoxedFuture<Outcome<T, E>>
    where
        T: Send + 'static,
        E: Debug + Send + 'static,
    {
        match self {
            Self::AsyncInline => Box::pin(timeout.outcome_async(op)),
            Self::AsyncTask => Box::pin(timeout.as_task().outcome_async(op)),
            Self::AsyncWorker => Box::pin(timeout.on_worker().outcome_async(op)),
            Self::SyncWorker | Self::SyncInline => panic!("{self:?} gives no future"),
        }
    }
}

/// A runtime with two worker threads.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// A runtime of one thread with paused time, which advances to the next timer if all tasks wait.
pub fn paused_runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

/// Runs `call` in paused time.
pub fn in_paused_time<T>(call: impl AsyncFnOnce() -> T) -> T {
    paused_runtime().block_on(call())
}

/// Polls `call` to completion on this thread, inside a runtime that is shut down without waiting.
/// Calls may be nested.
pub fn in_runtime<O>(call: impl Future<Output = O>) -> O {
    let runtime = runtime();
    let outcome = {
        let _inside = runtime.enter();
        block_on(call)
    };
    runtime.shutdown_background();
    outcome
}

struct WakeFn<F>(F);

impl<F: Fn() + Send + Sync> Wake for WakeFn<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// A waker that runs `wake` at each wake-up.
pub fn waker(wake: impl Fn() + Send + Sync + 'static) -> Waker {
    Arc::new(WakeFn(wake)).into()
}

/// Polls `future` to completion on this thread. Calls may be nested.
pub fn block_on<O>(future: impl Future<Output = O>) -> O {
    poll_to_end(pin!(future))
}

/// Not generic over the future, so that few copies are compiled.
fn poll_to_end<O>(mut future: Pin<&mut dyn Future<Output = O>>) -> O {
    let waker = unparks(thread::current());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn unparks(thread: Thread) -> Waker {
    waker(move || thread.unpark())
}

/// Polls `future` once; its waker opens `woken`.
pub fn poll_once<F: Future + Unpin>(future: &mut F, woken: &Gate) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(&woken.waker()))
}

/// A policy with a limit of `ms` milliseconds.
pub fn limit(name: &'static str, ms: u64) -> Timeout {
    Timeout::new(name, Duration::from_millis(ms)).unwrap()
}

/// Asserts that a call ended at its own limit and not earlier. `what` describes the call in the
/// panic message.
#[track_caller]
pub fn assert_timed_out<T: Debug, E: Debug>(what: impl Debug, outcome: &Outcome<T, E>) {
    let Outcome::TimedOut(error) = outcome else {
        panic!("{what:?}: {outcome:?}");
    };
    assert!(
        Some(error.elapsed()) >= error.limit(),
        "{what:?}: {error:?}"
    );
}

/// An operation that ends when its token is cancelled, with the token's error.
pub fn until_cancelled(token: &CancelToken) -> Result<u32, TimeoutError> {
    token.sleep(Duration::MAX)?;
    unreachable!("an endless sleep returned Ok")
}

/// Returns when the token is cancelled and its deadline, if any, has passed.
pub fn until_past(token: &CancelToken) {
    let _ = token.wait_timeout(Duration::MAX);
    let deadline = token.deadline();
    while deadline.remaining().is_some_and(|left| !left.is_zero()) {
        thread::yield_now();
    }
    // The clock may read exactly the deadline.
    let now = Instant::now();
    while Instant::now() == now {}
}

/// Waits until `holds` returns true. Panics after [`SOON`].
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(
            start.elapsed() < SOON,
            "condition never became true: {what}"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

/// Abandons an operation that runs until the gate opens.
#[track_caller]
pub fn abandon(way: Way, name: &'static str) -> Gate {
    let gate = Gate::new();
    let held = gate.clone();
    let outcome = way.run(&limit(name, short()), move |_| {
        held.wait();
        Ok::<_, TimeoutError>(7)
    });
    assert_timed_out(way, &outcome);
    gate
}

/// Keeps a worker busy until the gate opens. Returns after its operation has started.
pub fn occupy_worker(name: &'static str, gate: &Gate) -> JoinHandle<Outcome<u32, TimeoutError>> {
    let (busy, held) = (Gate::new(), gate.clone());
    let is_busy = busy.clone();
    let caller = thread::spawn(move || {
        limit(name, LONG).outcome(move |_| {
            is_busy.open();
            held.wait();
            Ok(7)
        })
    });
    busy.wait();
    caller
}

/// Runs `call`, which must return although `gate` is closed, and opens the gate afterwards.
pub fn before_it_opens<T: Send + 'static>(
    gate: &Gate,
    call: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (sender, ended) = mpsc::channel();
    let caller = thread::spawn(move || sender.send(call()).unwrap());
    let outcome = ended.recv_timeout(SOON / 2);
    gate.open();
    caller.join().unwrap();
    outcome.expect("the call did not return before the gate opened")
}
