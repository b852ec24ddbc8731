//! The two sides of a call, the same for every `run` mode: the caller waits, leaves and announces;
//! the operation starts, then publishes its result or stops.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::call::abandoned;
use crate::context::frame;
use crate::event::{CallId, EventKind, WorkerName};
use crate::outcome::{Cause, Reason, TimeoutError};
use crate::probe;
use crate::terms::Terms;
use crate::time::Clock;
use crate::time::Tick;
use crate::token::CancelToken;
use crate::token::node::Head;

use super::report::{Fault, LateReport, Report};
use super::verdict::{Phase, Verdict};

/// Where the caller is while the operation runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// On a parked thread. The caller itself cancels the token at the deadline.
    Parked,
    /// In a future. The timer cancels the token, even if the executor is busy.
    Polled,
    /// In a future that polls the operation itself.
    Polling,
    /// On the thread that runs the operation.
    Running,
}

/// The state that both sides of a call change.
pub(crate) struct CallState {
    verdict: Verdict,
    /// The number in the name of the worker; zero if no worker has started the operation.
    worker: AtomicU32,
    pub(crate) caller: Caller,
}

impl CallState {
    /// The state of a call whose operation is queued.
    pub(crate) fn queued(caller: Caller) -> Self {
        Self {
            verdict: Verdict::new(),
            worker: AtomicU32::new(0),
            caller,
        }
    }

    /// The state of a call whose operation runs in place. No other thread sees it, so each access
    /// may create a new one.
    pub(crate) fn started(caller: Caller) -> Self {
        let state = Self::queued(caller);
        let started = state.verdict.start();
        debug_assert!(started, "this call is not shared yet");
        state
    }

    fn worker(&self) -> Option<WorkerName> {
        match self.worker.load(Ordering::Relaxed) {
            0 => None,
            number => Some(WorkerName(number)),
        }
    }

    /// The key of the operation in the list of abandoned operations. Both sides compute the same
    /// key.
    fn key(&self) -> abandoned::Key {
        std::ptr::from_ref(self).addr()
    }
}

/// A call as each of its sides sees it.
#[derive(Clone, Copy)]
pub(crate) struct CallView<'a> {
    pub(crate) terms: &'a Terms,
    pub(crate) state: &'a CallState,
    pub(crate) late: &'a dyn LateReport,
    /// The token of the call, if one was created.
    pub(crate) token: Option<&'a Head>,
}

/// What the caller does next.
pub(crate) enum Progress {
    /// Take the published result.
    Published,
    /// Withdraw the operation: the wait is over and it has not started. If it starts meanwhile,
    /// check again.
    Withdraw,
    /// Leave: the wait is over. A result that is published before the caller leaves still counts.
    Over,
    /// Wait until this instant or the next wake-up, then check again.
    Wait(Tick),
}

/// The progress of a wait.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    /// When the wait ends; set once the token is cancelled or the deadline has passed.
    over: Option<Tick>,
}

impl Wait {
    /// Whether the token is cancelled or the deadline has passed.
    pub(crate) fn is_ending(&self) -> bool {
        self.over.is_some()
    }

    /// The deadline has passed and there is no grace.
    pub(crate) fn end_now(&mut self) {
        self.over = Some(Tick::PAST);
    }
}

/// The caller's side.
impl CallView<'_> {
    /// What the caller does next. Cancels the token if the deadline has passed.
    pub(crate) fn progress(&self, wait: &mut Wait) -> Progress {
        let phase = self.state.verdict.phase();
        match phase {
            Phase::Published => return Progress::Published,
            Phase::Stopped => return Progress::Over,
            Phase::Queued | Phase::Running => {}
        }
        let terms = self.terms;
        if wait.over.is_none() {
            if let Some((cause, _)) = self.cancellation() {
                self.finish_cancellation(cause);
                wait.over = Some(self.end_of_wait());
            } else if terms.clock().has_reached(terms.deadline()) {
                self.expire_token();
                wait.over = Some(terms.end());
            }
        }
        match wait.over {
            None => Progress::Wait(terms.deadline()),
            Some(_) if phase == Phase::Queued => Progress::Withdraw,
            Some(over) if terms.clock().has_reached(over) => Progress::Over,
            Some(over) => Progress::Wait(over),
        }
    }

    /// When the wait ends for a token that was cancelled just now.
    fn end_of_wait(&self) -> Tick {
        let (terms, is_elsewhere) = (self.terms, self.is_elsewhere());
        if is_elsewhere && probe::is_active() {
            // A test of the operation's cleanup waits for it.
            return terms.end();
        }
        terms.now().plus(terms.grace()).min(terms.end())
    }

    /// Whether the operation runs on another thread or in another task.
    fn is_elsewhere(&self) -> bool {
        matches!(self.state.caller, Caller::Parked | Caller::Polled)
    }

    /// Why the token was cancelled, unless that happened after the deadline of the call.
    fn cancellation(&self) -> Option<(Cause, Option<Reason>)> {
        self.token.and_then(Head::cancellation_before_deadline)
    }

    /// Wakes the waiters that the canceller has not woken yet. A caller that polls the operation
    /// polls it once more, and a waiter inside it must see the cancellation then.
    fn finish_cancellation(&self, cause: Cause) {
        if self.state.caller == Caller::Polling {
            if let Some(token) = self.token {
                token.cancel(cause, None);
            }
        }
    }

    /// Cancels the token at the deadline, unless the policy says `cancel = false`.
    fn expire_token(&self) {
        let Some(token) = self.token.filter(|_| self.terms.cancels_at_deadline()) else {
            return;
        };
        self.cancel(token, self.terms.cause());
    }

    /// Cancels the token on behalf of the caller.
    fn cancel(&self, token: &Head, cause: Cause) {
        // A caller that polls the operation runs all wakers before it continues, so that its next
        // poll sees their effect. In virtual time, no other thread may have a wake-up pending.
        if self.is_elsewhere() && self.terms.clock() == Clock::Real {
            token.cancel_without_waiting(cause);
        } else {
            token.cancel(cause, None);
        }
    }

    /// Withdraws a queued operation. Returns `false` if it has started.
    pub(crate) fn withdraw(&self) -> bool {
        self.state.verdict.withdraw()
    }

    /// Leaves. Returns the phase of the call at that moment.
    pub(crate) fn leave(&self) -> Phase {
        self.state.verdict.leave()
    }

    /// Leaves an operation that the caller has dropped in place: it is not abandoned.
    pub(crate) fn leave_dropped(&self) -> Phase {
        let is_late = self.state.verdict.stop();
        debug_assert!(!is_late, "the outcome event is not emitted yet");
        self.leave()
    }

    /// Ends a call that has a result: emits its event. The token no longer has a deadline of its
    /// own.
    pub(crate) fn end_with_result(&self, report: Report) {
        if let Some(token) = self.token {
            token.disarm();
        }
        if !self.terms.policy().has_listeners() {
            return;
        }
        let elapsed = self.terms.elapsed_at(report.at);
        let kind = report.into_event();
        self.terms
            .emit(self.terms.id(), kind, elapsed, self.state.worker());
    }

    /// Ends a call that the caller left in `phase`, and returns its error. Emits the outcome event,
    /// and the late event if the operation has ended by then. `no_worker` says that the operation
    /// was queued because no worker was free.
    pub(crate) fn end_without_result(&self, phase: Phase, no_worker: bool) -> TimeoutError {
        let terms = self.terms;
        self.expire_token();
        let (cause, reason) = self.cancellation().unwrap_or((terms.cause(), None));
        // The error of the call's own limit is no cancellation of the enclosing call.
        if cause != Cause::TimedOut {
            self.note_error_above();
        }
        if phase == Phase::Queued {
            let cause = match cause {
                Cause::TimedOut | Cause::DeadlineExceeded if no_worker => Cause::NoWorker,
                cause => cause,
            };
            return terms.not_started(cause, reason);
        }
        let kind = match cause {
            Cause::TimedOut => EventKind::TimedOut,
            Cause::DeadlineExceeded => EventKind::DeadlineExceeded,
            _ => EventKind::Cancelled,
        };
        let elapsed = terms.elapsed();
        let error = terms.error(cause, elapsed, true, reason);
        if phase == Phase::Stopped {
            // A destroyed operation is `Cancelled` to a caller that still waits. It gets no late
            // event.
            let report = self.late.take();
            if let Some(report) = report.filter(|report| !report.is_unfinished()) {
                self.late.put(report);
            }
        }
        self.announce(phase, kind, elapsed);
        error
    }

    /// Notes in the enclosing calls that their operations get the error of this one.
    fn note_error_above(&self) {
        match self.token {
            Some(token) => token.note_error_above(),
            // Without a token, the enclosing call is that of this thread.
            None => {
                if let Some(CancelToken(enclosing)) = frame::token() {
                    enclosing.note_error();
                }
            }
        }
    }

    /// Ends a call whose future was dropped in `phase`. `result` is the report of a published
    /// result that the caller did not take.
    pub(crate) fn end_dropped(&self, phase: Phase, result: Option<Report>) {
        if let Some(token) = self.token {
            self.cancel(token, Cause::Cancelled);
        }
        let id = self.announce(phase, EventKind::Dropped, self.terms.elapsed());
        if let Some(report) = result {
            self.late.put(report);
            if self.state.verdict.stop() {
                self.report_late(Some(id));
            }
        }
    }

    /// Emits the outcome event, and the late event if the operation has ended by then.
    fn announce(&self, phase: Phase, kind: EventKind<'_>, elapsed: Duration) -> CallId {
        let id = self.terms.id();
        let worker = self.state.worker();
        if phase == Phase::Running {
            let (name, clock) = (self.terms.name(), self.terms.clock());
            abandoned::add(self.state.key(), id, name, worker, clock);
        }
        self.terms.emit(id, kind, elapsed, worker);
        if self.state.verdict.announce() {
            self.report_late(Some(id));
        }
        id
    }

    /// Emits the late event. Only the second side to finish calls this, so it is emitted once. `id`
    /// is the number of the call if this side knows it; otherwise the list of abandoned operations
    /// has it.
    fn report_late(&self, id: Option<CallId>) {
        // Removed first: a listener that calls the same function again must not be refused because
        // of this operation.
        let ended = abandoned::remove(self.state.key());
        let Some(report) = self.late.take() else {
            return;
        };
        let id = ended.as_ref().map(|ended| ended.call).or(id);
        let id = id.unwrap_or_else(|| self.terms.id());
        let elapsed = self.terms.elapsed_at(report.at);
        let kind = report.into_late_event(self.token.is_some_and(Head::has_given_error));
        self.terms.emit(id, kind, elapsed, self.state.worker());
    }
}

/// The operation's side.
impl CallView<'_> {
    /// The operation is about to run on `worker`. Returns `false` if it was withdrawn, or if its
    /// token is cancelled or its deadline has passed: no operation starts after that.
    pub(crate) fn start_on(&self, worker: Option<WorkerName>) -> bool {
        let is_cancelled = self.token.is_some_and(|token| token.cause().is_some());
        if is_cancelled || self.terms.clock().has_reached(self.terms.deadline()) {
            return false;
        }
        if let Some(WorkerName(number)) = worker {
            self.state.worker.store(number, Ordering::Relaxed);
        }
        self.state.verdict.start()
    }

    /// Whether the caller has left. The caller can also leave right after this reading.
    pub(crate) fn has_caller_left(&self) -> bool {
        self.state.verdict.has_caller_left()
    }

    /// Publishes the stored result. Returns `false` if the caller has left.
    pub(crate) fn publish(&self) -> bool {
        self.state.verdict.publish()
    }

    /// Whether the result counts if the caller still waits.
    ///
    /// - A panic always counts: it is never lost while the caller waits.
    /// - A success counts until the end of the wait. A success that the caller itself polled always
    ///   counts, because the caller already holds it.
    /// - An error counts before the deadline and before the cancellation only.
    pub(crate) fn counts(&self, report: &Report) -> bool {
        let terms = self.terms;
        let is_cut_off = || self.is_cut_off(report.at);
        match report.fault() {
            Some(Fault::Panic(_)) => !(self.is_elsewhere() && is_cut_off()),
            None if self.state.caller == Caller::Polling => true,
            None => report.at <= terms.end() && !is_cut_off(),
            Some(Fault::Error(_) | Fault::NoValue) => {
                report.at < terms.deadline()
                    && self.token.is_none_or(|token| token.cause().is_none())
            }
        }
    }

    /// Whether the wait of the caller is over at `at`, in virtual time. Between the cancellation
    /// and what follows it, time stands and both sides run. In real time, the caller has left.
    fn is_cut_off(&self, at: Tick) -> bool {
        let is_test = self.terms.clock().is_for_tests() || probe::is_active();
        let is_cancelled = || self.token.is_some_and(|token| token.cause().is_some());
        let leaves_at_once = self.is_elsewhere() && self.terms.grace().is_zero();
        is_test && (leaves_at_once || at >= self.terms.end()) && is_cancelled()
    }

    /// The operation has ended and its value is dropped. The report becomes the late event, which
    /// follows the outcome event.
    pub(crate) fn stop(&self, report: Report) {
        self.late.put(report);
        if self.state.verdict.stop() {
            self.report_late(None);
        }
    }

    /// The operation was destroyed unfinished.
    #[cfg(feature = "tokio")]
    pub(crate) fn destroyed(&self) {
        self.stop(Report::unfinished(self.terms.now()));
    }
}
