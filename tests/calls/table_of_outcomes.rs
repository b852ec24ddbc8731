//! The outcome of a call for each cause, runner and kind of operation, with and without grace.

use crate::{call_error, concurrent, outcomes, support};
use std::collections::HashMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Condvar, LazyLock, Mutex, OnceLock};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use call_error::CallError;
use outcomes::{Body, CallResult, Expected, Form, Row, Source, checked_result, read};
use support::{ASYNC, Gate, SOON, Way, block_on, poll_once, short_limit};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, EventKind, Registration, Timeout,
    TimeoutError, add_listener,
};
use tokio::runtime::{Builder, Runtime};

const LONG: Duration = Duration::from_secs(60);
const BRIEF_GRACE: Duration = Duration::from_millis(100);
/// Number of calls that run at the same time.
const AT_ONCE: usize = 16;

/// A limit that passes during the test.
fn brief() -> Duration {
    2 * short_limit()
}

/// A runtime with a thread for each blocked task.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(AT_ONCE)
        .build()
        .unwrap()
});

type SeenEvent = (EventKind<'static>, Option<Cause>);

/// One call, for one row of the table.
struct Case {
    row: Row,
    limit: Duration,
    grace: Duration,
    deadline: Deadline,
    inherited: Deadline,
    upstream: CancelToken,
    parameter: CancelToken,
    token: OnceLock<CancelToken>,
    started: Gate,
    /// Opens when the source of the outcome has happened.
    triggered: Gate,
    /// Opens when the call has ended, or earlier if the row lets the operation end first.
    released: Gate,
    events: (Mutex<Vec<SeenEvent>>, Condvar),
}

/// Cases by limit. Each case has a limit of its own, by some nanoseconds, which identifies its
/// events. The limits of other tests are whole microseconds.
static CASES: Mutex<Option<HashMap<Duration, Arc<Case>>>> = Mutex::new(None);

fn listen() -> Registration {
    add_listener(|event| {
        let cases = CASES.lock().unwrap();
        let found = cases.as_ref().zip(event.limit);
        let Some(case) = found.and_then(|(cases, limit)| cases.get(&limit).cloned()) else {
            return;
        };
        drop(cases);
        let token = case.token.get().and_then(CancelToken::cause);
        case.events
            .0
            .lock()
            .unwrap()
            .push((event.clone().into_owned().kind, token));
        case.events.1.notify_all();
    })
}

impl Case {
    fn new(row: Row, number: usize) -> Arc<Self> {
        let soon = if row.is_first() { LONG } else { brief() };
        let after = |source, otherwise| {
            if row.source == source {
                soon
            } else {
                otherwise
            }
        };
        let grace = match row.body {
            _ if !row.graceful => Duration::ZERO,
            Body::Ignores => BRIEF_GRACE,
            _ => LONG,
        };
        let case = Arc::new(Self {
            row,
            limit: after(Source::OwnLimit, LONG) + Duration::from_nanos(number as u64 + 1),
            grace,
            deadline: Deadline::after(after(Source::Shared, LONG * 2)),
            inherited: Deadline::after(after(Source::Inherited, LONG * 3)),
            upstream: CancelToken::new(),
            parameter: CancelToken::new(),
            token: OnceLock::new(),
            started: Gate::new(),
            triggered: Gate::new(),
            released: Gate::new(),
            events: Default::default(),
        });
        let mut cases = CASES.lock().unwrap();
        let cases = cases.get_or_insert_default();
        cases.insert(case.limit, Arc::clone(&case));
        case
    }
}

/// The operation of the call.
impl Case {
    fn begin(&self, token: &CancelToken) {
        assert!(
            self.token.set(token.clone()).is_ok(),
            "the operation starts once"
        );
        self.started.open();
    }

    fn operate(&self, token: &CancelToken) -> CallResult {
        self.begin(token);
        match self.row.body {
            Body::Stops | Body::StopsWithError | Body::StopsWithSuccess => {
                assert_ne!(
                    token.wait_timeout(SOON),
                    None,
                    "the token was never cancelled"
                );
            }
            _ => self.block(),
        }
        self.end(token)
    }

    async fn operate_async(&self, token: &CancelToken) -> CallResult {
        self.begin(token);
        match self.row.body {
            Body::Stops | Body::StopsWithError | Body::StopsWithSuccess => {
                token.cancelled().await;
            }
            Body::Ignores if self.row.way == Way::AsyncInline => pending().await,
            _ => self.block(),
        }
        self.end(token)
    }

    fn block(&self) {
        match self.row.body {
            Body::Ignores if self.row.way != Way::SyncInline => self.released.wait(),
            Body::Ignores if self.row.is_cancelled() => self.triggered.wait(),
            Body::Ignores => thread::sleep(brief() + self.grace),
            _ if self.row.source == Source::Dropped && self.row.way.abandons() => {
                self.released.wait();
            }
            _ => {}
        }
    }

    fn end(&self, token: &CancelToken) -> CallResult {
        // The clock must advance past the instant at which the call could end.
        let now = Instant::now();
        while Instant::now() == now {}
        match self.row.body {
            Body::Stops => token.check().map(|()| 7).map_err(|_| CallError::Own),
            Body::StopsWithError | Body::FailsFirst => Err(CallError::Own),
            _ => Ok(7),
        }
    }
}

macro_rules! attribute {
    (mod $name:ident, [$($grace:tt)*], ($case:ident: $type:ty $(, $given:ident: $token:ty)?)) => {
        annotated! {
            mod $name, [
                name = "table_of_outcomes::attribute", limit = $case.limit, deadline = $case.deadline,
                upstream = $case.upstream $($grace)*
            ],
            ($case: $type $(, $given: $token)?) -> CallResult,
            { $case.operate(&cancel_token) }, async { $case.operate_async(&cancel_token).await }
        }
    };
}

attribute! { mod plain, [], (case: Arc<Case>) }
attribute! { mod plain_with_grace, [, grace = case.grace], (case: Arc<Case>) }
attribute! { mod given, [], (case: Arc<Case>, cancel_token: CancelToken) }
attribute! { mod given_with_grace, [, grace = case.grace], (case: Arc<Case>, cancel_token: CancelToken) }

/// The call of the row.
impl Case {
    fn context(&self) -> CallContext {
        let context = CallContext::detached();
        match (self.row.form, self.row.source) {
            (Form::Attribute, _) | (_, Source::Inherited) => context.with_deadline(self.inherited),
            (_, Source::Upstream) => context.with_token(&self.upstream),
            _ => context,
        }
    }

    fn policy(&self) -> Timeout {
        let policy = Timeout::new("table_of_outcomes::policy", self.limit).unwrap();
        policy.with_grace(self.grace)
    }

    fn call(self: &Arc<Self>) -> CallResult {
        let (case, given) = (Arc::clone(self), self.parameter.clone());
        let way = self.row.way;
        match (self.row.form, self.row.source, self.row.graceful) {
            _ if ASYNC.contains(&way) => block_on(self.start()),
            (Form::Policy, ..) if way == Way::SyncWorker => {
                checked_result(self.policy().outcome(move |token| case.operate(&token)))
            }
            (Form::Policy, ..) => {
                checked_result(self.policy().inline().outcome(|token| case.operate(&token)))
            }
            (_, Source::Parameter, true) => given_with_grace::call(way, case, given),
            (_, Source::Parameter, false) => given::call(way, case, given),
            (_, _, true) => plain_with_grace::call(way, case),
            (_, _, false) => plain::call(way, case),
        }
    }

    /// Returns the call of an async runner, not yet polled.
    fn start(self: &Arc<Self>) -> Pin<Box<dyn Future<Output = CallResult> + Send>> {
        let (case, given) = (Arc::clone(self), self.parameter.clone());
        let way = self.row.way;
        match (self.row.form, self.row.source, self.row.graceful) {
            (Form::Policy, ..) => {
                let operate = |token| async move { case.operate_async(&token).await };
                let call = way.start(&self.policy(), operate);
                Box::pin(async { checked_result(call.await) })
            }
            (_, Source::Parameter, true) => given_with_grace::start(way, case, given),
            (_, Source::Parameter, false) => given::start(way, case, given),
            (_, _, true) => plain_with_grace::start(way, case),
            (_, _, false) => plain::start(way, case),
        }
    }

    /// Starts the call and drops it. Returns its result if the first poll is ready.
    fn start_and_drop(self: &Arc<Self>) -> Option<CallResult> {
        let (mut call, woken) = (self.start(), Gate::new());
        if let Poll::Ready(result) = poll_once(&mut call, &woken) {
            return Some(result);
        }
        self.started.wait();
        if self.row.is_first() {
            self.released.open();
            woken.wait();
        }
        drop(call);
        None
    }

    /// Makes the source of the outcome happen, unless it is a deadline.
    fn trigger(&self) {
        match self.row.source {
            Source::Upstream => self.upstream.cancel(),
            Source::Parameter => self.parameter.cancel(),
            Source::Injected => self.token.get().unwrap().cancel(),
            _ => {}
        }
        self.triggered.open();
    }

    fn events(&self, count: usize) -> Vec<SeenEvent> {
        let events = self.events.0.lock().unwrap();
        let wait = self
            .events
            .1
            .wait_timeout_while(events, SOON, |events| events.len() < count);
        wait.unwrap().0.clone()
    }
}

/// Runs the call of `row` and checks its outcome.
fn run(row: Row, number: usize) {
    let case = Case::new(row, number);
    let expected = row.outcome();
    let _inside = RUNTIME.enter();
    let result = thread::scope(|scope| {
        if !row.is_first() {
            scope.spawn(|| {
                case.started.wait();
                case.trigger();
            });
        }
        case.context().run(|| match row.source {
            Source::Dropped => case.start_and_drop(),
            _ => Some(case.call()),
        })
    });
    let at_return = case.events(0);
    let token = case.token.get().expect("the operation has started");
    assert_eq!(token.cause(), expected.token, "{row:?}");
    assert!(
        !at_return.is_empty(),
        "{row:?}: the event must precede the return"
    );
    if row.body == Body::Ignores && row.way.abandons() {
        assert_eq!(
            at_return.len(),
            1,
            "{row:?}: the operation is still running"
        );
    }
    case.released.open();
    let events = case.events(expected.events.len());
    assert!(
        events.iter().all(|event| event.1 == expected.token),
        "{row:?}: {events:?}"
    );
    let read = result.as_ref().map(read);
    let error = read.and_then(|read| read.1);
    let seen = Expected {
        status: read.map(|read| read.0),
        error: error.map(TimeoutError::cause),
        events: events.into_iter().map(|event| event.0).collect(),
        token: token.cause(),
    };
    assert_eq!(seen, expected, "{row:?}");
    if let Some(error) = error {
        case.check_error(error);
    } else if row.is_first() && result.is_some() {
        case.check_disarmed(token);
    }
}

impl Case {
    fn check_error(&self, error: &TimeoutError) {
        let (row, elapsed) = (self.row, error.elapsed());
        assert_ne!(error.status(), CallStatus::NotStarted, "{row:?}");
        assert_eq!(error.limit(), Some(self.limit), "{row:?}");
        assert!(elapsed < SOON, "{row:?}: the call took {elapsed:?}");
        let earliest = match row.source {
            Source::OwnLimit => self.limit,
            Source::Inherited => return assert!(self.inherited.has_passed(), "{row:?}"),
            Source::Shared => return assert!(self.deadline.has_passed(), "{row:?}"),
            _ => Duration::ZERO,
        };
        let outstayed = if row.body == Body::Ignores {
            self.grace
        } else {
            Duration::ZERO
        };
        assert!(
            elapsed >= earliest + outstayed,
            "{row:?}: ended early, after {elapsed:?}"
        );
    }

    /// After a success, only upstream tokens cancel a token that was kept.
    fn check_disarmed(&self, token: &CancelToken) {
        let row = self.row;
        assert_eq!(
            token.deadline(),
            self.context().run(Deadline::current),
            "{row:?}"
        );
        self.trigger();
        assert_eq!(
            token.cause().is_some(),
            row.is_cancelled() && row.source != Source::Dropped,
            "{row:?}"
        );
    }
}

/// Each rule must hold for every runner and every cause.
#[test]
fn every_call_follows_the_rules() {
    let _listener = listen();
    let rows = Row::table();
    assert!(rows.len() > 400, "{} rows", rows.len());
    concurrent::run_concurrently(AT_ONCE, rows.len(), |number| run(rows[number], number));
    for case in CASES.lock().unwrap().take().unwrap().values() {
        let events: Vec<_> = case.events(0).into_iter().map(|event| event.0).collect();
        assert_eq!(
            events,
            case.row.outcome().events,
            "{:?}: no event follows the last one",
            case.row
        );
    }
}
