//! Who gets an answer that callers no longer get.

#[path = "../support/annotated.rs"]
#[macro_use]
mod annotated;
#[path = "../support/crowd.rs"]
mod crowd;
#[path = "../support/panics.rs"]
mod panics;
#[path = "../support/mod.rs"]
mod support;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use support::{
    APART, EVERY_WAY, Gate, SOON, TIMED, Way, block_on, eventually, in_runtime, limit, poll_once,
    record, runtime, short, until_past,
};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Deadline, EventKind, Failure, Outcome, TimeoutError,
    is_cancelled, timeout, workers,
};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Error {
    Own,
    NoAnswer(CallStatus),
}

impl From<TimeoutError> for Error {
    fn from(error: TimeoutError) -> Self {
        Self::NoAnswer(error.status())
    }
}

type Answer = Result<u32, Error>;

const TIMED_OUT: Answer = Err(Error::NoAnswer(CallStatus::TimedOut));

/// Where answers come back, with the thread on which they do.
#[derive(Clone, Debug, Default)]
struct Back(Arc<Mutex<Vec<(Answer, String)>>>);

impl Back {
    /// A function for `on_late`.
    fn taker(&self) -> impl FnOnce(Answer) + Send + use<> {
        let back = self.clone();
        move |late| {
            assert!(
                Deadline::current() == Deadline::never() && !is_cancelled(),
                "a call is around this"
            );
            let thread = thread::current().name().unwrap_or("unnamed").to_owned();
            back.0.lock().unwrap().push((late, thread));
        }
    }

    fn answers(&self) -> Vec<Answer> {
        let back = self.0.lock().unwrap();
        back.iter().map(|(late, _)| late.clone()).collect()
    }

    fn threads(&self) -> Vec<String> {
        let back = self.0.lock().unwrap();
        back.iter().map(|(_, thread)| thread.clone()).collect()
    }

    /// Whether nobody else has anything of it.
    fn is_let_go(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// What an operation does once its call is over: on a thread of its own when `go` is open, else as soon as it is told.
fn end_late(go: Option<Gate>, token: &CancelToken) {
    match go {
        Some(go) => go.wait(),
        None => until_past(token),
    }
}

annotated! {
    mod late, [name = "on_late::late", ms = short(), on_late = back.taker()],
    (back: Back, go: Option<Gate>, answer: Answer) -> Answer {
        drop(back);
        end_late(go, &cancel_token);
        answer
    }
}

#[test]
fn an_answer_that_comes_too_late_goes_to_on_late_whole_and_once() {
    for way in EVERY_WAY {
        for answer in [Ok(7), Err(Error::Own)] {
            if way == Way::AsyncInline && answer.is_ok() {
                // What a poll in place returns is never late.
                continue;
            }
            let what = format!("{way:?}, {answer:?}");
            let (recorder, back) = (record("on_late::late"), Back::default());
            let go = way.abandons().then(Gate::new);
            let ending = late::call(way, back.clone(), go.clone(), answer.clone());
            assert_eq!(ending, TIMED_OUT, "{what}");
            if let Some(go) = go {
                assert_eq!(back.answers(), [], "{what}");
                go.open();
            }
            let kinds = recorder.wait_for(2);
            assert_eq!(kinds[0], EventKind::TimedOut, "{what}");
            assert!(!kinds[1].is_verdict(), "{what}: {kinds:?}");
            assert_eq!(back.answers(), [answer], "{what}");
            eventually("the function is let go", || back.is_let_go());
        }
    }
}

#[test]
fn on_late_is_called_where_the_operation_has_ended() {
    let (recorder, back) = (record("on_late::late"), Back::default());
    let go = Gate::new();
    let ending = late::call(Way::SyncWorker, back.clone(), Some(go.clone()), Ok(7));
    assert_eq!(ending, TIMED_OUT);
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

/// Runs an operation that blocks its thread this way, under a `Timeout`.
fn run_with(
    way: Way,
    name: &'static str,
    ms: u64,
    on_late: impl FnOnce(Answer) + Send + 'static,
    op: impl FnOnce(CancelToken) -> Answer + Send + 'static,
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

/// The same, as a `Result`.
fn call_with(
    way: Way,
    name: &'static str,
    ms: u64,
    on_late: impl FnOnce(Answer) + Send + 'static,
    op: impl FnOnce(CancelToken) -> Answer + Send + 'static,
) -> Answer {
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
fn a_timeout_value_gives_late_answers_back_as_well() {
    for way in TIMED {
        let (recorder, back) = (record("on_late::value"), Back::default());
        let late = |token: CancelToken| {
            until_past(&token);
            Ok(7)
        };
        let ending = run_with(way, "on_late::value", short(), back.taker(), late);
        assert!(
            matches!(ending, Outcome::TimedOut(_)),
            "{way:?}: {ending:?}"
        );
        recorder.wait_for(2);
        assert_eq!(back.answers(), [Ok(7)], "{way:?}");
        let ending = call_with(way, "on_late::value", short(), back.taker(), late);
        assert_eq!(ending, TIMED_OUT, "{way:?}");
        recorder.wait_for(4);
        assert_eq!(back.answers(), [Ok(7), Ok(7)], "{way:?}");

        let back = Back::default();
        let ending = run_with(way, "on_late::value", 60_000, back.taker(), |_| Ok(7));
        assert!(matches!(ending, Outcome::Success(7)), "{way:?}: {ending:?}");
        let failure = |_| Err(Error::Own);
        let ending = call_with(way, "on_late::value", 60_000, back.taker(), failure);
        assert_eq!(ending, failure(CancelToken::new()), "{way:?}");
        assert_eq!(back.answers(), [], "{way:?}");
        assert!(back.is_let_go(), "{way:?}");
    }
}

#[test]
fn on_late_comes_before_the_late_event_and_after_the_verdict_of_a_call_that_has_returned() {
    for way in APART {
        let recorder = Arc::new(record("on_late::order"));
        let told = Arc::new(Mutex::new(None));
        let go = Gate::new();
        let (recorder_there, told_there) = (Arc::clone(&recorder), Arc::clone(&told));
        let note = move |_| *told_there.lock().unwrap() = Some(recorder_there.kinds());
        let release = go.clone();
        let ending = run_with(way, "on_late::order", short(), note, move |_| {
            release.wait();
            Ok(7)
        });
        assert!(
            matches!(ending, Outcome::TimedOut(_)),
            "{way:?}: {ending:?}"
        );
        go.open();
        let kinds = recorder.wait_for(2);
        assert_eq!(kinds[1], EventKind::AbandonedWorkerSucceeded, "{way:?}");
        let told = told.lock().unwrap().take();
        assert_eq!(told, Some(vec![EventKind::TimedOut]), "{way:?}");
    }
}

type Keep = Arc<Mutex<Option<CancelToken>>>;

annotated! {
    mod in_time, [name = "on_late::in_time", limit = SOON, deadline = until, on_late = back.taker()],
    (back: Back, until: Deadline, keep: Keep, answer: Answer) -> Answer {
        drop(back);
        *keep.lock().unwrap() = Some(cancel_token);
        answer
    }
}

#[test]
fn an_answer_that_callers_get_does_not_go_to_on_late_which_is_let_go() {
    for way in EVERY_WAY {
        for answer in [Ok(7), Err(Error::Own)] {
            let (back, keep) = (Back::default(), Keep::default());
            let until = Deadline::never();
            let ending = in_time::call(way, back.clone(), until, keep.clone(), answer.clone());
            assert_eq!(ending, answer, "{way:?}");
            assert_eq!(back.answers(), [], "{way:?}");
            // A token that is kept keeps nothing of it.
            assert!(keep.lock().unwrap().is_some(), "{way:?}");
            eventually("the function is let go", || back.is_let_go());
        }
    }
}

#[test]
fn a_call_that_does_not_start_has_no_answer_for_on_late() {
    for way in EVERY_WAY {
        let (back, keep) = (Back::default(), Keep::default());
        let until = Deadline::after(Duration::ZERO);
        let ending = in_time::call(way, back.clone(), until, keep.clone(), Ok(7));
        assert_eq!(
            ending,
            Err(Error::NoAnswer(CallStatus::NotStarted)),
            "{way:?}"
        );
        assert_eq!(back.answers(), [], "{way:?}");
        assert!(back.is_let_go(), "{way:?}");
    }
}

#[test]
fn a_panic_of_the_operation_is_no_answer_for_on_late() {
    panics::record_panics();
    for way in APART {
        let (recorder, back) = (record("on_late::panic"), Back::default());
        let release = Gate::new();
        let body = release.clone();
        let ending = run_with(way, "on_late::panic", short(), back.taker(), move |_| {
            body.wait();
            panic!("wanted: late")
        });
        assert!(
            matches!(ending, Outcome::TimedOut(_)),
            "{way:?}: {ending:?}"
        );
        release.open();
        let kinds = recorder.wait_for(2);
        let panic = Failure::Panic("wanted: late".into());
        assert_eq!(kinds[1], EventKind::AbandonedWorkerFailed(panic), "{way:?}");
        assert_eq!(back.answers(), [], "{way:?}");
        eventually("the function is let go", || back.is_let_go());
    }
}

#[test]
fn a_panic_of_on_late_changes_nothing() {
    panics::record_panics();
    for way in TIMED {
        let recorder = record("on_late::panics");
        let panics = |_| panic!("wanted: on_late");
        let ending = run_with(way, "on_late::panics", short(), panics, |token| {
            until_past(&token);
            Ok(7)
        });
        assert!(
            matches!(ending, Outcome::TimedOut(_)),
            "{way:?}: {ending:?}"
        );
        let kinds = recorder.wait_for(2);
        let expected = [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded];
        assert_eq!(kinds, expected, "{way:?}");
    }
    assert_eq!(panics::shown_as("wanted: on_late").len(), TIMED.len());
}

/// Opens `there` and answers when `go` is open.
fn answer(there: &Gate, go: &Gate) -> u32 {
    there.open();
    go.wait();
    7
}

#[timeout(name = "on_late::left", limit = SOON, run = "task", on_late = back.taker())]
async fn left_task(back: Back, there: Gate, go: Gate) -> Answer {
    Ok(answer(&there, &go))
}

#[timeout(name = "on_late::left", limit = SOON, run = "worker", on_late = back.taker())]
async fn left_worker(back: Back, there: Gate, go: Gate) -> Answer {
    Ok(answer(&there, &go))
}

type Call = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A call in each way that outlives its future.
fn left(back: &Back, there: &Gate, go: &Gate) -> [Call; 2] {
    let task = left_task(back.clone(), there.clone(), go.clone());
    let worker = left_worker(back.clone(), there.clone(), go.clone());
    [Box::pin(task), Box::pin(worker)]
}

#[test]
fn an_answer_of_an_operation_whose_future_was_dropped_goes_to_on_late() {
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
        assert_eq!(back.answers(), []);
        go.open();
        let kinds = recorder.wait_for(2);
        assert_eq!(kinds[1], EventKind::AbandonedWorkerSucceeded);
        assert_eq!(back.answers(), [Ok(7)]);
    }
}

#[test]
fn an_answer_that_nobody_took_goes_to_on_late_where_the_future_is_dropped() {
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
        assert_eq!(back.answers(), []);
        // Who drops it may be inside a call.
        let around = Deadline::after(SOON);
        CallContext::detached()
            .with_deadline(around)
            .run(|| drop(call));
        let here = thread::current().name().map(str::to_owned);
        assert_eq!(back.answers(), [Ok(7)]);
        assert_eq!(back.threads(), [here.expect("a name")]);
        let expected = [EventKind::Dropped, EventKind::AbandonedWorkerSucceeded];
        assert_eq!(recorder.kinds(), expected);
    }
}

/// A future that answers, and then panics when it is dropped.
struct Dropped;

impl Future for Dropped {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer> {
        Poll::Ready(Ok(7))
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        panic!("wanted: a destructor");
    }
}

/// Had gone wrong: the answer was leaked on a worker. Guards against a panic in a panic as well, which ends the process.
#[test]
fn an_answer_before_a_panicking_destructor_goes_to_on_late_which_may_panic_too() {
    panics::record_panics();
    let timeout = limit("on_late::destructor", 60_000);
    for way in [Way::AsyncTask, Way::AsyncWorker] {
        let back = Back::default();
        let taker = back.taker();
        let late = |late| {
            taker(late);
            panic!("wanted: on_late, and a destructor");
        };
        let ending = catch_unwind(AssertUnwindSafe(|| match way {
            Way::AsyncTask => {
                in_runtime(timeout.as_task().on_late(late).outcome_async(|_| Dropped))
            }
            _ => block_on(timeout.on_worker().on_late(late).outcome_async(|_| Dropped)),
        }));
        let panic = ending.expect_err("a panic goes on in the caller");
        assert_eq!(
            panic.downcast_ref(),
            Some(&"wanted: a destructor"),
            "{way:?}"
        );
        assert_eq!(back.answers(), [Ok(7)], "{way:?}");
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
fn an_inline_call_may_lend_to_on_late() {
    let pool = Pool(Mutex::default());
    assert_eq!(pool.connection(), 0);
    assert_eq!(block_on(Pool::connection_of(&pool)), Err(0));
    assert_eq!(block_on(pool.returned()), Err(0));
    assert_eq!(*pool.0.lock().unwrap(), [7, 8, 9]);
}

/// Guards against an answer that is lost, or that two have, between "finished" and "timed out".
#[test]
fn at_the_limit_every_answer_is_handed_out_or_goes_to_on_late() {
    const RUNS: usize = 4000;

    let runtime = runtime();
    let (made, given, handed) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, AtomicUsize)>::default();
    crowd::crowd(8, RUNS, |run| {
        let nap = Duration::from_micros(1000 + 20 * (run as u64 % 100));
        let (made, given) = (Arc::clone(&made), Arc::clone(&given));
        let timeout = limit("on_late::edge", 2);
        let late = move |late: Answer| {
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
        handed.fetch_add(usize::from(outcome.is_success()), Ordering::SeqCst);
    });
    drop(runtime);
    let made = || made.load(Ordering::SeqCst);
    let gone = || handed.load(Ordering::SeqCst) + given.load(Ordering::SeqCst);
    eventually("every answer is accounted for", || {
        workers::stats().busy == 0 && gone() >= made()
    });
    assert_eq!(gone(), made());
    assert!(handed.load(Ordering::SeqCst) > 0 && given.load(Ordering::SeqCst) > 0);
}
