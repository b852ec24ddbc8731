//! `on_late` receives each result that no caller gets, exactly once.

use crate::own_process::in_own_process;
use crate::{concurrent, panics, support};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use support::{
    ABANDONING, EVERY_WAY, Gate, SOON, TIMED, Way, assert_timed_out, block_on, eventually,
    in_runtime, limit, poll_once, record, runtime, short, until_past,
};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Deadline, EventKind, Failure, Outcome, TimeoutError,
    check, timeout, workers,
};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Error {
    Own,
    NoResult(CallStatus),
}

impl From<TimeoutError> for Error {
    fn from(error: TimeoutError) -> Self {
        Self::NoResult(error.status())
    }
}

type CallResult = Result<u32, Error>;

const TIMED_OUT: CallResult = Err(Error::NoResult(CallStatus::TimedOut));

/// Collects the results given to `on_late`, and the threads of these calls.
#[derive(Clone, Debug, Default)]
struct Back(Arc<Mutex<Vec<(CallResult, String)>>>);

impl Back {
    /// A function for `on_late` that stores its result here.
    fn taker(&self) -> impl Fn(CallResult) + Clone + Send + use<> {
        let back = self.clone();
        move |late| {
            assert!(
                Deadline::current() == Deadline::never() && check().is_ok(),
                "`on_late` runs outside any call"
            );
            let thread = thread::current().name().unwrap_or("unnamed").to_owned();
            back.0.lock().unwrap().push((late, thread));
        }
    }

    fn results(&self) -> Vec<CallResult> {
        let back = self.0.lock().unwrap();
        back.iter().map(|(late, _)| late.clone()).collect()
    }

    fn threads(&self) -> Vec<String> {
        let back = self.0.lock().unwrap();
        back.iter().map(|(_, thread)| thread.clone()).collect()
    }

    /// Whether all functions made by `taker` were dropped.
    fn is_dropped(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// Blocks until `go` is open, or without a gate until the call's deadline has passed.
fn end_late(go: Option<Gate>, token: &CancelToken) {
    match go {
        Some(go) => go.wait(),
        None => until_past(token),
    }
}

annotated! {
    mod late, [name = "on_late::late", ms = short(), on_late = back.taker()],
    (back: Back, go: Option<Gate>, result: CallResult) -> CallResult {
        drop(back);
        end_late(go, &cancel_token);
        result
    }
}

#[test]
fn a_late_result_is_given_to_on_late_once() {
    for way in EVERY_WAY {
        for result in [Ok(7), Err(Error::Own)] {
            if way == Way::AsyncInline && result.is_ok() {
                // A success returned by a poll in place is never late.
                continue;
            }
            let what = format!("{way:?}, {result:?}");
            let (recorder, back) = (record("on_late::late"), Back::default());
            let go = way.abandons().then(Gate::new);
            let outcome = late::call(way, back.clone(), go.clone(), result.clone());
            assert_eq!(outcome, TIMED_OUT, "{what}");
            if let Some(go) = go {
                assert_eq!(back.results(), [], "{what}");
                go.open();
            }
            let kinds = recorder.wait_for(2);
            assert_eq!(kinds[0], EventKind::TimedOut, "{what}");
            assert!(support::is_late(&kinds[1]), "{what}: {kinds:?}");
            assert_eq!(back.results(), [result], "{what}");
            eventually("the function is dropped", || back.is_dropped());
        }
    }
}

#[test]
fn on_late_runs_on_the_thread_where_the_operation_ended() {
    let (recorder, back) = (record("on_late::late"), Back::default());
    let go = Gate::new();
    let outcome = late::call(Way::SyncWorker, back.clone(), Some(go.clone()), Ok(7));
    assert_eq!(outcome, TIMED_OUT);
    go.open();
    recorder.wait_for(2);
    let events = recorder.events();
    let worker = events[1].worker.map(|worker| worker.to_string());
    assert_eq!(back.threads(), [worker.expect("a worker")]);

    let here = thread::current().name().map(str::to_owned);
    let back = Back::default();
    assert_eq!(
        late::call(Way::SyncInline, back.clone(), None, Ok(7)),
        TIMED_OUT
    );
    assert_eq!(back.threads(), [here.expect("a name")]);
}

/// Runs an operation that blocks its thread in this place, by a `Timeout`.
fn run_with(
    way: Way,
    name: &'static str,
    ms: u64,
    on_late: impl Fn(CallResult) + Clone + Send + 'static,
    op: impl FnOnce(CancelToken) -> CallResult + Send + 'static,
) -> Outcome<u32, Error> {
    let timeout = limit(name, ms);
    match way {
        Way::SyncWorker => timeout.on_late(on_late).outcome(op),
        Way::SyncInline => timeout.inline().on_late(on_late).outcome(op),
        Way::AsyncInline => block_on(
            timeout
                .on_late(on_late)
                .outcome_async(|token| async { op(token) }),
        ),
        Way::AsyncTask => {
            let call = timeout.as_task().on_late(on_late);
            in_runtime(call.outcome_async(|token| async { op(token) }))
        }
        Way::AsyncWorker => {
            let call = timeout.on_worker().on_late(on_late);
            block_on(call.outcome_async(|token| async { op(token) }))
        }
    }
}

/// As `run_with`, and returns a `Result`.
fn call_with(
    way: Way,
    name: &'static str,
    ms: u64,
    on_late: impl Fn(CallResult) + Clone + Send + 'static,
    op: impl FnOnce(CancelToken) -> CallResult + Send + 'static,
) -> CallResult {
    let timeout = limit(name, ms);
    match way {
        Way::SyncWorker => timeout.on_late(on_late).call(op),
        Way::SyncInline => timeout.inline().on_late(on_late).call(op),
        Way::AsyncInline => block_on(
            timeout
                .on_late(on_late)
                .call_async(|token| async { op(token) }),
        ),
        Way::AsyncTask => {
            let call = timeout.as_task().on_late(on_late);
            in_runtime(call.call_async(|token| async { op(token) }))
        }
        Way::AsyncWorker => {
            let call = timeout.on_worker().on_late(on_late);
            block_on(call.call_async(|token| async { op(token) }))
        }
    }
}

#[test]
fn a_policy_gives_late_results_to_on_late() {
    for way in TIMED {
        let (recorder, back) = (record("on_late::value"), Back::default());
        let late = |token: CancelToken| {
            until_past(&token);
            Ok(7)
        };
        let outcome = run_with(way, "on_late::value", short(), back.taker(), late);
        assert_timed_out(way, &outcome);
        recorder.wait_for(2);
        assert_eq!(back.results(), [Ok(7)], "{way:?}");
        let outcome = call_with(way, "on_late::value", short(), back.taker(), late);
        assert_eq!(outcome, TIMED_OUT, "{way:?}");
        recorder.wait_for(4);
        assert_eq!(back.results(), [Ok(7), Ok(7)], "{way:?}");

        let back = Back::default();
        let outcome = run_with(way, "on_late::value", 60_000, back.taker(), |_| Ok(7));
        assert!(
            matches!(outcome, Outcome::Success(7)),
            "{way:?}: {outcome:?}"
        );
        let failure = |_| Err(Error::Own);
        let outcome = call_with(way, "on_late::value", 60_000, back.taker(), failure);
        assert_eq!(outcome, failure(CancelToken::new()), "{way:?}");
        assert_eq!(back.results(), [], "{way:?}");
        assert!(back.is_dropped(), "{way:?}");
    }
}

#[test]
fn on_late_runs_after_the_outcome_event_and_before_the_late_event() {
    for way in ABANDONING {
        let recorder = Arc::new(record("on_late::order"));
        let kinds_before = Arc::new(Mutex::new(None));
        let go = Gate::new();
        let (recorder_there, sink) = (Arc::clone(&recorder), Arc::clone(&kinds_before));
        let note = move |_| *sink.lock().unwrap() = Some(recorder_there.kinds());
        let release = go.clone();
        let outcome = run_with(way, "on_late::order", short(), note, move |_| {
            release.wait();
            Ok(7)
        });
        assert_timed_out(way, &outcome);
        go.open();
        let kinds = recorder.wait_for(2);
        assert_eq!(kinds[1], EventKind::AbandonedWorkerSucceeded, "{way:?}");
        let kinds_before = kinds_before.lock().unwrap().take();
        assert_eq!(kinds_before, Some(vec![EventKind::TimedOut]), "{way:?}");
    }
}

type Keep = Arc<Mutex<Option<CancelToken>>>;

annotated! {
    mod in_time, [name = "on_late::in_time", limit = SOON, deadline = until, on_late = back.taker()],
    (back: Back, until: Deadline, keep: Keep, result: CallResult) -> CallResult {
        drop(back);
        *keep.lock().unwrap() = Some(cancel_token);
        result
    }
}

// Fails if the function is not dropped after the call.
#[test]
fn a_result_that_the_caller_gets_is_not_given_to_on_late() {
    for way in EVERY_WAY {
        for result in [Ok(7), Err(Error::Own)] {
            let (back, keep) = (Back::default(), Keep::default());
            let until = Deadline::never();
            let outcome = in_time::call(way, back.clone(), until, keep.clone(), result.clone());
            assert_eq!(outcome, result, "{way:?}");
            assert_eq!(back.results(), [], "{way:?}");
            // A kept token does not keep the function.
            assert!(keep.lock().unwrap().is_some(), "{way:?}");
            eventually("the function is dropped", || back.is_dropped());
        }
    }
}

#[test]
fn on_late_is_not_called_for_a_call_that_does_not_start() {
    for way in EVERY_WAY {
        let (back, keep) = (Back::default(), Keep::default());
        let until = Deadline::after(Duration::ZERO);
        let outcome = in_time::call(way, back.clone(), until, keep.clone(), Ok(7));
        assert_eq!(
            outcome,
            Err(Error::NoResult(CallStatus::NotStarted)),
            "{way:?}"
        );
        assert_eq!(back.results(), [], "{way:?}");
        assert!(back.is_dropped(), "{way:?}");
    }
}

#[test]
fn on_late_is_not_called_for_a_panic_of_the_operation() {
    panics::record_panics();
    for way in ABANDONING {
        let (recorder, back) = (record("on_late::panic"), Back::default());
        let release = Gate::new();
        let body = release.clone();
        let outcome = run_with(way, "on_late::panic", short(), back.taker(), move |_| {
            body.wait();
            panic!("wanted: late")
        });
        assert_timed_out(way, &outcome);
        release.open();
        let kinds = recorder.wait_for(2);
        let panic = Failure::Panic("wanted: late".into());
        assert_eq!(kinds[1], EventKind::AbandonedWorkerFailed(panic), "{way:?}");
        assert_eq!(back.results(), [], "{way:?}");
        eventually("the function is dropped", || back.is_dropped());
    }
}

#[test]
fn a_panic_of_on_late_changes_no_outcome() {
    panics::record_panics();
    for way in TIMED {
        let recorder = record("on_late::panics");
        let panics = |_| panic!("wanted: on_late");
        let outcome = run_with(way, "on_late::panics", short(), panics, |token| {
            until_past(&token);
            Ok(7)
        });
        assert_timed_out(way, &outcome);
        let kinds = recorder.wait_for(2);
        let expected = [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded];
        assert_eq!(kinds, expected, "{way:?}");
    }
    assert_eq!(panics::shown_as("wanted: on_late").len(), TIMED.len());
}

/// Opens `there`, and returns a value when `go` is open.
fn wait_for(there: &Gate, go: &Gate) -> u32 {
    there.open();
    go.wait();
    7
}

#[timeout(name = "on_late::left", limit = SOON, run = "task", on_late = back.taker())]
async fn left_task(back: Back, there: Gate, go: Gate) -> CallResult {
    Ok(wait_for(&there, &go))
}

#[timeout(name = "on_late::left", limit = SOON, run = "worker", on_late = back.taker())]
async fn left_worker(back: Back, there: Gate, go: Gate) -> CallResult {
    Ok(wait_for(&there, &go))
}

type Call = Pin<Box<dyn Future<Output = CallResult> + Send>>;

/// One call for each place where a call outlives its future.
fn left(back: &Back, there: &Gate, go: &Gate) -> [Call; 2] {
    let task = left_task(back.clone(), there.clone(), go.clone());
    let worker = left_worker(back.clone(), there.clone(), go.clone());
    [Box::pin(task), Box::pin(worker)]
}

#[test]
fn the_result_of_a_dropped_call_is_given_to_on_late() {
    let runtime = runtime();
    let _inside = runtime.enter();
    for way in 0..2 {
        let (recorder, back) = (record("on_late::left"), Back::default());
        let (there, go) = <(Gate, Gate)>::default();
        let mut call = left(&back, &there, &go)
            .into_iter()
            .nth(way)
            .expect("a call");
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
        there.wait();
        drop(call);
        assert_eq!(recorder.wait_for(1), [EventKind::Dropped]);
        assert_eq!(back.results(), []);
        go.open();
        let kinds = recorder.wait_for(2);
        assert_eq!(kinds[1], EventKind::AbandonedWorkerSucceeded);
        assert_eq!(back.results(), [Ok(7)]);
    }
}

// Fails if `on_late` runs inside a call.
#[test]
fn an_unread_result_is_given_to_on_late_where_the_future_is_dropped() {
    let runtime = runtime();
    let _inside = runtime.enter();
    for way in 0..2 {
        let (recorder, back) = (record("on_late::left"), Back::default());
        let (woken, go) = <(Gate, Gate)>::default();
        let mut call = left(&back, &Gate::new(), &go)
            .into_iter()
            .nth(way)
            .expect("a call");
        assert!(poll_once(&mut call, &woken).is_pending());
        go.open();
        woken.wait();
        assert_eq!(back.results(), []);
        // The code that drops the future may be inside a call itself.
        let around = Deadline::after(SOON);
        CallContext::detached()
            .with_deadline(around)
            .run(|| drop(call));
        let here = thread::current().name().map(str::to_owned);
        assert_eq!(back.results(), [Ok(7)]);
        assert_eq!(back.threads(), [here.expect("a name")]);
        let expected = [EventKind::Dropped, EventKind::AbandonedWorkerSucceeded];
        assert_eq!(recorder.kinds(), expected);
    }
}

/// A future that returns a value, and then panics when it is dropped.
struct Dropped;

impl Future for Dropped {
    type Output = CallResult;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<CallResult> {
        Poll::Ready(Ok(7))
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        panic!("wanted: a destructor");
    }
}

/// The result used to be leaked on a worker. A panic while panicking would abort the process.
#[test]
fn a_result_before_a_panicking_destructor_is_given_to_on_late() {
    panics::record_panics();
    let timeout = limit("on_late::destructor", 60_000);
    for way in [Way::AsyncTask, Way::AsyncWorker] {
        let back = Back::default();
        let taker = back.taker();
        let late = move |late| {
            taker(late);
            panic!("wanted: on_late, and a destructor");
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| match way {
            Way::AsyncTask => {
                in_runtime(timeout.as_task().on_late(late).outcome_async(|_| Dropped))
            }
            _ => block_on(timeout.on_worker().on_late(late).outcome_async(|_| Dropped)),
        }));
        let panic = outcome.expect_err("a panic goes on in the caller");
        assert_eq!(
            panic.downcast_ref(),
            Some(&"wanted: a destructor"),
            "{way:?}"
        );
        assert_eq!(back.results(), [Ok(7)], "{way:?}");
    }
}

struct Pool(Mutex<Vec<u32>>);

impl Pool {
    fn put(&self, connection: u32) {
        self.0.lock().unwrap().push(connection);
    }

    #[timeout(ms = short(), run = "inline", on_late = |late| self.put(late), fallback = |_| 0)]
    fn connection(&self) -> u32 {
        until_past(&cancel_token);
        7
    }

    #[timeout(ms = short(), fallback = |_| Err(0), on_late = |late| pool.put(late.unwrap_err()))]
    async fn connection_of(pool: &Pool) -> Result<(), u32> {
        until_past(&cancel_token);
        Err(8)
    }

    #[timeout(ms = short(), fallback = |_| Err(0), on_late = |late| self.put(late.unwrap_err()))]
    fn returned(&self) -> Pin<Box<dyn Future<Output = Result<(), u32>> + Send + '_>> {
        Box::pin(async move {
            until_past(&cancel_token);
            Err(9)
        })
    }
}

#[test]
fn on_late_of_an_inline_call_may_borrow() {
    let pool = Pool(Mutex::default());
    assert_eq!(pool.connection(), 0);
    assert_eq!(block_on(Pool::connection_of(&pool)), Err(0));
    assert_eq!(block_on(pool.returned()), Err(0));
    assert_eq!(*pool.0.lock().unwrap(), [7, 8, 9]);
}

/// No result may be lost, or handed out twice, between "finished" and "timed out".
#[test]
fn at_the_limit_every_result_is_returned_or_given_to_on_late() {
    in_own_process(|| {
        const RUNS: usize = 4000;

        let runtime = runtime();
        let (made, given, handed) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, AtomicUsize)>::default();
        concurrent::run_concurrently(8, RUNS, |run| {
            let nap = Duration::from_micros(1000 + 20 * (run as u64 % 100));
            let (made, given) = (Arc::clone(&made), Arc::clone(&given));
            let timeout = limit("on_late::edge", 2);
            let late = move |late: CallResult| {
                given.fetch_add(usize::from(late.is_ok()), Ordering::SeqCst);
            };
            let produce = move || {
                made.fetch_add(1, Ordering::SeqCst);
                Ok(7)
            };
            let sync = {
                let produce = produce.clone();
                move |_| {
                    thread::sleep(nap);
                    produce()
                }
            };
            let r#async = move |_| async move {
                tokio::time::sleep(nap).await;
                produce()
            };
            let outcome = match run % 8 {
                0 => timeout.inline().on_late(late).outcome(sync),
                1 | 2 => runtime.block_on(timeout.as_task().on_late(late).outcome_async(r#async)),
                3 => runtime.block_on(timeout.on_worker().on_late(late).outcome_async(r#async)),
                4 => runtime.block_on(timeout.on_late(late).outcome_async(r#async)),
                _ => timeout.on_late(late).outcome(sync),
            };
            handed.fetch_add(
                usize::from(outcome.status() == CallStatus::Ok),
                Ordering::SeqCst,
            );
        });
        drop(runtime);
        let made = || made.load(Ordering::SeqCst);
        let gone = || handed.load(Ordering::SeqCst) + given.load(Ordering::SeqCst);
        eventually("every result is accounted for", || {
            workers::stats().busy == 0 && gone() >= made()
        });
        assert_eq!(gone(), made());
        assert!(handed.load(Ordering::SeqCst) > 0 && given.load(Ordering::SeqCst) > 0);
    });
}
