//! A call that ends close to its limit, and all that is seen of it.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

use super::seeded::{Answer, Call, Waits};
use super::support::{Way, block_on, eventually};

/// With threads to spare for tasks that block theirs.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(16).enable_time().build().unwrap()
});

/// Counts itself where it goes out of being: a value, or an operation.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// What was told of a call, and what its token read meanwhile, if its operation had shown it by then.
struct Told {
    event: Event<'static>,
    is_value_gone: bool,
    is_shown: bool,
    token: Option<Cause>,
}

/// One call and all that is seen of it.
pub struct Case {
    pub call: Call,
    pub upstream: CancelToken,
    /// Set before that token is cancelled.
    pub cancelled: AtomicBool,
    inherited: OnceLock<Deadline>,
    /// The call's own, once its operation has started.
    token: OnceLock<CancelToken>,
    begun: OnceLock<Instant>,
    /// At the least so long the call has lasted then.
    lasted: OnceLock<Duration>,
    /// What the operation has ended with.
    ended: OnceLock<Answer>,
    /// Operations that are gone, and values.
    gone: [Arc<AtomicUsize>; 2],
    told: Mutex<Vec<Told>>,
    /// What the call gave, if it gave anything.
    pub status: OnceLock<CallStatus>,
}

type Given = Outcome<Counted, &'static str>;

/// The operation.
impl Case {
    fn begin(&self, token: &CancelToken) {
        self.begun.get_or_init(Instant::now);
        assert!(self.token.set(token.clone()).is_ok(), "it starts once");
    }

    fn end(&self) -> Result<Counted, &'static str> {
        let answer = self.call.answer;
        self.lasted
            .get_or_init(|| self.begun.get().map_or(Duration::ZERO, Instant::elapsed));
        assert!(self.ended.set(answer).is_ok(), "it ends once");
        match answer {
            Answer::Ok => Ok(Counted(Arc::clone(&self.gone[1]))),
            Answer::Err => Err("stopped"),
            // Without the hook, which would print it.
            Answer::Panic => resume_unwind(Box::new("wanted")),
        }
    }

    fn is_over(&self, start: Instant, token: &CancelToken) -> bool {
        start.elapsed() >= self.call.ends
            || self.call.waits == Waits::Watchful && token.is_cancelled()
    }

    fn left(&self, start: Instant) -> Duration {
        self.call.ends.saturating_sub(start.elapsed())
    }

    fn operate(&self, start: Instant, token: &CancelToken) -> Result<Counted, &'static str> {
        self.begin(token);
        match self.call.waits {
            Waits::Asleep => thread::sleep(self.left(start)),
            Waits::Heedful => drop(token.wait_timeout(self.left(start))),
            Waits::Busy | Waits::Watchful => {
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
    ) -> Result<Counted, &'static str> {
        self.begin(&token);
        match self.call.waits {
            Waits::Asleep => thread::sleep(self.left(start)),
            Waits::Heedful => drop(timeout(self.left(start), token.cancelled()).await),
            Waits::Busy | Waits::Watchful => {
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
            gone: Default::default(),
            told: Mutex::default(),
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
        if !call.heard {
            return policy;
        }
        let listening = Arc::downgrade(self);
        policy.with_listener(move |event| {
            if let Some(case) = listening.upgrade() {
                let token = case.token.get();
                let told = Told {
                    event: event.clone().into_owned(),
                    is_value_gone: case.gone[1].load(Ordering::SeqCst) == 1,
                    is_shown: token.is_some(),
                    token: token.and_then(CancelToken::cause),
                };
                case.told.lock().unwrap().push(told);
            }
        })
    }

    /// `None` if the future was dropped; `Err` is the operation's panic.
    fn outcome(self: &Arc<Self>, start: Instant) -> Option<thread::Result<Given>> {
        let (case, policy) = (Arc::clone(self), self.policy());
        let gone = Counted(Arc::clone(&self.gone[0]));
        let made = match self.call.way {
            Way::SyncWorker | Way::SyncInline => catch_unwind(AssertUnwindSafe(|| {
                self.call.way.run(&policy, move |token| {
                    let _gone = gone;
                    case.operate(start, &token)
                })
            })),
            way => {
                let _inside = RUNTIME.enter();
                let call = way.start(&policy, move |token| async move {
                    let _gone = gone;
                    case.operate_async(start, token).await
                });
                return self.poll(call, start);
            }
        };
        Some(made)
    }

    /// Polls the call, until it is dropped if that is what becomes of it.
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

    /// Makes the call, and looks at what was told of it the moment it is back.
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
        if self.call.heard {
            let told = self.told.lock().unwrap();
            let verdict = told.first().expect("it is told before the call is back");
            self.check_verdict(verdict);
        }
    }
}

/// The comparison.
impl Case {
    /// No ending comes before what it is blamed on.
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

    /// What is told is what was given, and what the token says.
    fn check_verdict(&self, told: &Told) {
        let (event, status) = (&told.event, self.status.get());
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
                assert!(!told.is_shown || told.token.is_some(), "{event}");
                return;
            }
            _ => panic!("{event} is no verdict"),
        };
        assert_eq!(status, Some(&expected), "{event}");
        let is_in_time =
            self.call.way == Way::AsyncInline || event.elapsed <= self.call.limit + self.call.grace;
        assert!(
            is_in_time || expected != CallStatus::Ok,
            "{event}: too late"
        );
        // With `cancel = false` it fires by what comes from above alone.
        let fires = self.call.cancel || cause == Some(Cause::Cancelled);
        if cause.is_some() && fires && told.is_shown {
            assert_eq!(told.token, cause, "{event}: before its token has fired");
        }
    }

    /// After everything.
    pub fn check(&self) {
        let [operations, values] = &self.gone;
        eventually("the operation is gone", || {
            operations.load(Ordering::SeqCst) == 1
        });
        let ended = self.ended.get().copied();
        let made = usize::from(ended == Some(Answer::Ok));
        eventually("all values are gone", || {
            values.load(Ordering::SeqCst) == made
        });
        match self.status.get() {
            Some(CallStatus::Ok) => {
                assert_eq!(ended, Some(Answer::Ok));
                let most = self.call.limit + self.call.grace;
                let is_in_time = self.lasted.get().is_some_and(|lasted| *lasted <= most);
                // What a poll in place returns counts, also after the limit.
                assert!(is_in_time || self.call.way == Way::AsyncInline);
            }
            Some(CallStatus::Failed) => assert!(ended.is_some_and(|ended| ended != Answer::Ok)),
            Some(CallStatus::NotStarted) => assert!(self.token.get().is_none()),
            _ => {}
        }
        if self.call.heard {
            self.check_told(ended);
        }
    }

    /// One verdict; and of an operation whose answer did not count, one late report.
    fn check_told(&self, ended: Option<Answer>) {
        let is_answered = matches!(self.status.get(), Some(CallStatus::Ok | CallStatus::Failed));
        let late = ended.filter(|_| !is_answered);
        let count = 1 + usize::from(late.is_some());
        eventually("all is told", || self.told.lock().unwrap().len() >= count);
        let told = self.told.lock().unwrap();
        let events: Vec<_> = told.iter().map(|told| &told.event).collect();
        assert_eq!(events.len(), count, "{events:?}");
        assert!(
            events.iter().all(|event| event.call == events[0].call),
            "{events:?}"
        );
        let answered = is_answered.then_some(ended).flatten();
        assert_eq!(answer(&events[0].kind), answered, "{events:?}");
        for told in &told[1..] {
            let event = &told.event;
            assert!(
                !event.kind.is_verdict() && answer(&event.kind) == late,
                "{event}"
            );
            // Its value is disposed of before that.
            assert_eq!(told.is_value_gone, late == Some(Answer::Ok), "{event}");
        }
        self.check_token(&told[0]);
    }

    /// A signal stays as it was. A call that was answered in time hears only of what lies above, and so does one with `cancel = false`.
    fn check_token(&self, verdict: &Told) {
        let Some(token) = self.token.get().filter(|_| verdict.is_shown) else {
            return;
        };
        let cause = token.cause();
        match (verdict.token, cause) {
            (None, None) => {}
            (None, Some(Cause::DeadlineExceeded)) => assert!(self.call.inherited.is_some()),
            (None, Some(Cause::Cancelled)) => assert!(self.cancelled.load(Ordering::SeqCst)),
            (before, after) => assert_eq!(before, after, "{}", verdict.event),
        }
        if cause.is_none() && self.call.inherited.is_none() {
            assert_eq!(token.deadline(), Deadline::never());
        }
    }
}

/// What an event says of the operation's end.
fn answer(kind: &EventKind<'_>) -> Option<Answer> {
    match kind {
        EventKind::Succeeded | EventKind::AbandonedWorkerSucceeded => Some(Answer::Ok),
        EventKind::Failed(failure) | EventKind::AbandonedWorkerFailed(failure) => match failure {
            Failure::Error(_) => Some(Answer::Err),
            Failure::Panic(_) => Some(Answer::Panic),
            _ => None,
        },
        _ => None,
    }
}
