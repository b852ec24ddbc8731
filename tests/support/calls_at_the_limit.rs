//! A call that ends close to its limit, and all observations of it.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, Event, EventKind, Failure, Outcome,
    Timeout, TimeoutError,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::random_calls::{Call, Waits};
use super::scenario::OpResult;
use super::support::{Drops, Tracked, Way, block_on, eventually};

/// Has spare threads for tasks that block their thread.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(16).enable_time().build().unwrap()
});

/// An event of a call, and the cause of its token at that moment if the operation had started.
struct Reported {
    event: Event<'static>,
    is_value_dropped: bool,
    has_token: bool,
    token: Option<Cause>,
}

/// One call and all observations of it.
pub struct Case {
    pub call: Call,
    pub upstream: CancelToken,
    /// Set before the upstream token is cancelled.
    pub cancelled: AtomicBool,
    inherited: OnceLock<Deadline>,
    /// The call's own token, once its operation has started.
    token: OnceLock<CancelToken>,
    begun: OnceLock<Instant>,
    /// A lower bound of the call's elapsed time when its operation ended.
    lasted: OnceLock<Duration>,
    /// How the operation ended.
    ended: OnceLock<OpResult>,
    /// The dropped operations, and the dropped values.
    dropped: [Drops; 2],
    reported: Mutex<Vec<Reported>>,
    /// The status of the call's outcome, if it had one.
    pub status: OnceLock<CallStatus>,
}

type Given = Outcome<Tracked, &'static str>;

/// The operation.
impl Case {
    fn begin(&self, token: &CancelToken) {
        self.begun.get_or_init(Instant::now);
        assert!(
            self.token.set(token.clone()).is_ok(),
            "the operation starts once"
        );
    }

    fn end(&self) -> Result<Tracked, &'static str> {
        let result = self.call.result;
        self.lasted
            .get_or_init(|| self.begun.get().map_or(Duration::ZERO, Instant::elapsed));
        assert!(self.ended.set(result).is_ok(), "the operation ends once");
        match result {
            OpResult::Ok => Ok(self.dropped[1].value()),
            OpResult::Err => Err("stopped"),
            // Without the panic hook, which would print the panic.
            OpResult::Panic => resume_unwind(Box::new("wanted")),
        }
    }

    fn is_over(&self, start: Instant, token: &CancelToken) -> bool {
        start.elapsed() >= self.call.ends
            || self.call.waits == Waits::BusyUntilCancelled && token.is_cancelled()
    }

    fn left(&self, start: Instant) -> Duration {
        self.call.ends.saturating_sub(start.elapsed())
    }

    fn operate(&self, start: Instant, token: &CancelToken) -> Result<Tracked, &'static str> {
        self.begin(token);
        match self.call.waits {
            Waits::Asleep => thread::sleep(self.left(start)),
            Waits::AsleepUntilCancelled => drop(token.wait_timeout(self.left(start))),
            Waits::Busy | Waits::BusyUntilCancelled => {
                while !self.is_over(start, token) {
                    thread::yield_now();
                }
            }
        }
        self.end()
    }

    async fn operate_async(
        &self,
        start: Instant,
        token: CancelToken,
    ) -> Result<Tracked, &'static str> {
        self.begin(&token);
        match self.call.waits {
            Waits::Asleep => thread::sleep(self.left(start)),
            Waits::AsleepUntilCancelled => drop(timeout(self.left(start), token.cancelled()).await),
            Waits::Busy | Waits::BusyUntilCancelled => {
                while !self.is_over(start, &token) {
                    yield_now().await;
                }
            }
        }
        self.end()
    }
}

/// The call.
impl Case {
    pub fn of(call: Call) -> Arc<Self> {
        Arc::new(Self {
            call,
            upstream: CancelToken::new(),
            cancelled: AtomicBool::new(false),
            inherited: OnceLock::new(),
            token: OnceLock::new(),
            begun: OnceLock::new(),
            lasted: OnceLock::new(),
            ended: OnceLock::new(),
            dropped: Default::default(),
            reported: Mutex::default(),
            status: OnceLock::new(),
        })
    }

    fn policy(self: &Arc<Self>) -> Timeout {
        let call = self.call;
        let policy = Timeout::new("stressed", call.limit).unwrap();
        let policy = policy
            .with_grace(call.grace)
            .cancel_on_timeout(call.cancel)
            .with_max_abandoned(usize::MAX);
        if !call.has_listener {
            return policy;
        }
        let listening = Arc::downgrade(self);
        policy.with_listener(move |event| {
            if let Some(case) = listening.upgrade() {
                let token = case.token.get();
                let reported = Reported {
                    event: event.clone().into_owned(),
                    is_value_dropped: case.dropped[1].count() == 1,
                    has_token: token.is_some(),
                    token: token.and_then(CancelToken::cause),
                };
                case.reported.lock().unwrap().push(reported);
            }
        })
    }

    /// Returns `None` if the future was dropped; `Err` is the operation's panic.
    fn outcome(self: &Arc<Self>, start: Instant) -> Option<thread::Result<Given>> {
        let (case, policy) = (Arc::clone(self), self.policy());
        let dropped = self.dropped[0].value();
        let made = match self.call.way {
            Way::SyncWorker | Way::SyncInline => catch_unwind(AssertUnwindSafe(|| {
                self.call.way.run(&policy, move |token| {
                    let _dropped = dropped;
                    case.operate(start, &token)
                })
            })),
            way => {
                let _inside = RUNTIME.enter();
                let call = way.start(&policy, move |token| async move {
                    let _dropped = dropped;
                    case.operate_async(start, token).await
                });
                return self.poll(call, start);
            }
        };
        Some(made)
    }

    /// Polls the call to its end, or until its future is dropped.
    fn poll<F: Future + Unpin>(
        &self,
        mut call: F,
        start: Instant,
    ) -> Option<thread::Result<F::Output>> {
        let polled = || {
            let Some(dropped) = self.call.dropped else {
                return Some(block_on(call));
            };
            let mut context = Context::from_waker(Waker::noop());
            loop {
                if let Poll::Ready(outcome) = Pin::new(&mut call).poll(&mut context) {
                    return Some(outcome);
                }
                if start.elapsed() >= dropped {
                    return None;
                }
                thread::yield_now();
            }
        };
        catch_unwind(AssertUnwindSafe(polled)).transpose()
    }

    /// Makes the call, and checks its events right after it has returned.
    pub fn run(self: &Arc<Self>) {
        let start = Instant::now();
        let mut context = CallContext::detached();
        if let Some(after) = self.call.inherited {
            let deadline = self.inherited.get_or_init(|| Deadline::after(after));
            context = context.with_deadline(*deadline);
        }
        if self.call.upstream.is_some() {
            context = context.with_token(&self.upstream);
        }
        let outcome = context.run(|| self.outcome(start));
        let took = start.elapsed();
        let runs_on = self.token.get().is_some() && self.ended.get().is_none();
        match &outcome {
            None => {}
            Some(Err(_)) => assert!(self.status.set(CallStatus::Failed).is_ok()),
            Some(Ok(outcome)) => {
                assert!(self.status.set(outcome.status()).is_ok());
                if let Some(error) = outcome.timeout_error() {
                    self.check_not_early(error, took, runs_on);
                }
            }
        }
        if self.call.has_listener {
            let reported = self.reported.lock().unwrap();
            let outcome_event = reported
                .first()
                .expect("the outcome event precedes the return");
            self.check_outcome_event(outcome_event);
        }
    }
}

/// The comparison with the rules.
impl Case {
    /// A call does not end before the event that is its cause.
    fn check_not_early(&self, error: &TimeoutError, took: Duration, runs_on: bool) {
        let Call { limit, grace, .. } = self.call;
        let has_come = match error.cause() {
            Cause::TimedOut => took >= limit && error.elapsed() >= limit,
            Cause::DeadlineExceeded => self.inherited.get().is_some_and(Deadline::has_passed),
            Cause::Cancelled => self.cancelled.load(Ordering::SeqCst),
            _ => false,
        };
        assert!(has_come, "{error}: early, after {took:?}");
        if runs_on && error.is_timed_out() && self.call.inherited.is_none() {
            assert!(took >= limit + grace, "{error}: without grace, {took:?}");
        }
    }

    /// The outcome event agrees with the returned outcome and with the token's cause.
    fn check_outcome_event(&self, reported: &Reported) {
        let (event, status) = (&reported.event, self.status.get());
        let (expected, cause) = match &event.kind {
            EventKind::Succeeded => (CallStatus::Ok, None),
            EventKind::Failed(_) => (CallStatus::Failed, None),
            EventKind::TimedOut => (CallStatus::TimedOut, Some(Cause::TimedOut)),
            EventKind::DeadlineExceeded => {
                (CallStatus::DeadlineExceeded, Some(Cause::DeadlineExceeded))
            }
            EventKind::Cancelled => (CallStatus::UpstreamCancelled, Some(Cause::Cancelled)),
            EventKind::NotStarted(_) => (CallStatus::NotStarted, None),
            EventKind::Dropped => {
                assert_eq!(status, None, "{event}");
                assert!(!reported.has_token || reported.token.is_some(), "{event}");
                return;
            }
            _ => panic!("{event} is no outcome event"),
        };
        assert_eq!(status, Some(&expected), "{event}");
        let is_in_time =
            self.call.way == Way::AsyncInline || event.elapsed <= self.call.limit + self.call.grace;
        assert!(
            is_in_time || expected != CallStatus::Ok,
            "{event}: a late success"
        );
        // With `cancel = false` only upstream tokens cancel the token.
        let is_cancelled = self.call.cancel || cause == Some(Cause::Cancelled);
        if cause.is_some() && is_cancelled && reported.has_token {
            assert_eq!(
                reported.token, cause,
                "{event}: before its token was cancelled"
            );
        }
    }

    /// Checks the state after everything has ended.
    pub fn check(&self) {
        let [operations, values] = &self.dropped;
        eventually("the operation is dropped", || operations.count() == 1);
        let ended = self.ended.get().copied();
        let made = usize::from(ended == Some(OpResult::Ok));
        eventually("all values are dropped", || values.count() == made);
        match self.status.get() {
            Some(CallStatus::Ok) => {
                assert_eq!(ended, Some(OpResult::Ok));
                let most = self.call.limit + self.call.grace;
                let is_in_time = self.lasted.get().is_some_and(|lasted| *lasted <= most);
                // A success returned by a poll in place counts even after the limit.
                assert!(is_in_time || self.call.way == Way::AsyncInline);
            }
            Some(CallStatus::Failed) => assert!(ended.is_some_and(|ended| ended != OpResult::Ok)),
            Some(CallStatus::NotStarted) => assert!(self.token.get().is_none()),
            _ => {}
        }
        if self.call.has_listener {
            self.check_events(ended);
        }
    }

    /// One outcome event, and one late event if the result did not count.
    fn check_events(&self, ended: Option<OpResult>) {
        let has_result = matches!(self.status.get(), Some(CallStatus::Ok | CallStatus::Failed));
        let late = ended.filter(|_| !has_result);
        let count = 1 + usize::from(late.is_some());
        eventually("all events are emitted", || {
            self.reported.lock().unwrap().len() >= count
        });
        let reported = self.reported.lock().unwrap();
        let events: Vec<_> = reported.iter().map(|reported| &reported.event).collect();
        assert_eq!(events.len(), count, "{events:?}");
        assert!(
            events.iter().all(|event| event.call == events[0].call),
            "{events:?}"
        );
        let expected = has_result.then_some(ended).flatten();
        assert_eq!(result(&events[0].kind), expected, "{events:?}");
        for reported in &reported[1..] {
            let event = &reported.event;
            assert!(
                crate::support::is_late(&event.kind) && result(&event.kind) == late,
                "{event}"
            );
            // A late value is dropped before the late event.
            assert_eq!(
                reported.is_value_dropped,
                late == Some(OpResult::Ok),
                "{event}"
            );
        }
        self.check_token(&reported[0]);
    }

    /// A cause never changes. After an outcome in time, and with `cancel = false`, only enclosing
    /// deadlines and upstream tokens cancel the token.
    fn check_token(&self, outcome_event: &Reported) {
        let Some(token) = self.token.get().filter(|_| outcome_event.has_token) else {
            return;
        };
        let cause = token.cause();
        match (outcome_event.token, cause) {
            (None, None) => {}
            (None, Some(Cause::DeadlineExceeded)) => assert!(self.call.inherited.is_some()),
            (None, Some(Cause::Cancelled)) => assert!(self.cancelled.load(Ordering::SeqCst)),
            (before, after) => assert_eq!(before, after, "{}", outcome_event.event),
        }
        if cause.is_none() && self.call.inherited.is_none() {
            assert_eq!(token.deadline(), Deadline::never());
        }
    }
}

/// How the operation ended, according to an event.
fn result(kind: &EventKind<'_>) -> Option<OpResult> {
    match kind {
        EventKind::Succeeded | EventKind::AbandonedWorkerSucceeded => Some(OpResult::Ok),
        EventKind::Failed(failure) | EventKind::AbandonedWorkerFailed(failure) => match failure {
            Failure::Error(_) => Some(OpResult::Err),
            Failure::Panic(_) => Some(OpResult::Panic),
            _ => None,
        },
        _ => None,
    }
}
