//! The two view of a call, the same for every way to run: the caller looks, leaves and announces, the operation answers or stops.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::deadline::Clock;
use crate::error::{Cause, Reason, TimeoutError};
use crate::event::{CallId, EventKind, WorkerName};
use crate::terms::Terms;
use crate::tick::Tick;
use crate::token::node::Head;
use crate::workers::abandoned;

use super::report::{Fault, LateReport, Report};
use super::verdict::{Phase, Verdict};

/// Where the caller is while the operation runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// On a thread that parks, and cancels the token itself at the deadline.
    Parked,
    /// In a future. The timer cancels the token, however busy its executor is.
    Polled,
    /// In a future that polls the operation itself.
    Polling,
    /// On the thread that runs the operation.
    Running,
}

/// What both view of a call change.
pub(crate) struct State {
    verdict: Verdict,
    /// The number in the worker's name; zero where no worker has taken the operation.
    worker: AtomicU32,
    pub(crate) caller: Caller,
}

impl State {
    /// Of a call whose operation waits for somebody to run it.
    pub(crate) fn queued(caller: Caller) -> Self {
        Self {
            verdict: Verdict::new(),
            worker: AtomicU32::new(0),
            caller,
        }
    }

    /// Of a call whose operation runs where its caller is. Nobody else sees it, so it may be made anew for each look.
    pub(crate) fn started(caller: Caller) -> Self {
        let state = Self::queued(caller);
        let started = state.verdict.start();
        debug_assert!(started, "nobody else has seen this call");
        state
    }

    fn worker(&self) -> Option<WorkerName> {
        match self.worker.load(Ordering::Relaxed) {
            0 => None,
            number => Some(WorkerName(number)),
        }
    }

    /// By what the two view know an operation that was left.
    fn key(&self) -> abandoned::Key {
        std::ptr::from_ref(self).addr()
    }
}

/// A call, as both its view see it.
#[derive(Clone, Copy)]
pub(crate) struct CallView<'a> {
    pub(crate) terms: &'a Terms,
    pub(crate) state: &'a State,
    pub(crate) late: &'a dyn LateReport,
    /// Its token, unless nobody has asked for one.
    pub(crate) token: Option<&'a Head>,
}

/// What the caller sees when it looks.
pub(crate) enum Look {
    /// The answer is there.
    Answered,
    /// The wait is over, and the operation has not been started: withdraw it, or look again if it has
    /// been started meanwhile.
    Withdraw,
    /// The wait is over without one, unless it comes before the caller leaves.
    Over,
    /// Nothing yet. Look again then, if not woken before.
    Wait(Tick),
}

/// How far the caller has got in its wait.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    /// When the wait is over, once the signal has been seen or given.
    over: Option<Tick>,
}

impl Wait {
    /// Whether the signal has been seen or given.
    pub(crate) fn is_ending(&self) -> bool {
        self.over.is_some()
    }

    /// The deadline has come, and there is no grace; whether that is news.
    pub(crate) fn end_now(&mut self) -> bool {
        self.over.replace(Tick::PAST).is_none()
    }
}

/// The caller's side.
impl CallView<'_> {
    /// Where the call stands. Gives the signal if it is due.
    pub(crate) fn look(&self, wait: &mut Wait) -> Look {
        let phase = self.state.verdict.phase();
        match phase {
            Phase::Answered => return Look::Answered,
            Phase::Stopped => return Look::Over,
            Phase::Queued | Phase::Running => {}
        }
        let terms = self.terms;
        if wait.over.is_none() {
            if self.cancellation().is_some() {
                wait.over = Some(terms.now().plus(terms.grace()).min(terms.end()));
            } else if terms.clock().has_reached(terms.deadline()) {
                self.expire_token();
                wait.over = Some(terms.end());
            }
        }
        match wait.over {
            None => Look::Wait(terms.deadline()),
            Some(_) if phase == Phase::Queued => Look::Withdraw,
            Some(over) if terms.clock().has_reached(over) => Look::Over,
            Some(over) => Look::Wait(over),
        }
    }

    /// Why the token has been cancelled, unless that came after the call's own deadline.
    fn cancellation(&self) -> Option<(Cause, Option<Reason>)> {
        self.token.and_then(Head::cancellation_before_deadline)
    }

    /// The deadline has come: cancels the token, if that is what the call's policy says.
    fn expire_token(&self) {
        let Some(token) = self.token.filter(|_| self.terms.cancels_at_deadline()) else {
            return;
        };
        // A caller that polls the operation itself runs all wakers first, so that its next poll finds
        // what they have woken. In virtual time, a wake-up must not be left to another thread.
        let is_elsewhere = matches!(self.state.caller, Caller::Parked | Caller::Polled);
        if is_elsewhere && self.terms.clock() == Clock::Real {
            token.cancel_without_waiting(self.terms.cause());
        } else {
            token.cancel(self.terms.cause(), None);
        }
    }

    /// The caller withdraws a queued operation; `false` if it has been started.
    pub(crate) fn withdraw(&self) -> bool {
        self.state.verdict.withdraw()
    }

    /// The caller gives up, and finds the call in this phase.
    pub(crate) fn leave(&self) -> Phase {
        self.state.verdict.leave()
    }

    /// The caller leaves an operation that it has just dropped where it was: it does not run on.
    pub(crate) fn leave_dropped(&self) -> Phase {
        let late = self.state.verdict.stop();
        debug_assert!(!late, "the caller has announced nothing yet");
        self.leave()
    }

    /// The verdict of a call that was answered: its event. The token forgets the deadline.
    pub(crate) fn answered(&self, report: Report) {
        if let Some(token) = self.token {
            token.disarm();
        }
        if !self.terms.policy().has_listeners() {
            return;
        }
        let elapsed = self.terms.until(report.at);
        let kind = report.in_time();
        self.terms
            .tell(self.terms.id(), kind, elapsed, self.state.worker());
    }

    /// The verdict of a call that the caller left, finding it in `phase`: its event, its error, and the late report if the
    /// operation has ended by now. `scarce` says that it was queued for want of a worker.
    pub(crate) fn unanswered(&self, phase: Phase, scarce: bool) -> TimeoutError {
        let terms = self.terms;
        self.expire_token();
        let (cause, reason) = self.cancellation().unwrap_or((terms.cause(), None));
        if phase == Phase::Queued {
            let cause = match cause {
                Cause::TimedOut | Cause::DeadlineExceeded if scarce => Cause::NoWorker,
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
            // To a caller who still waits, an operation that was destroyed is a cancellation and no more.
            let report = self.late.take();
            if let Some(report) = report.filter(|report| !report.is_unfinished()) {
                self.late.put(report);
            }
        }
        self.announce(phase, kind, elapsed);
        error
    }

    /// The ending of a call whose future was dropped, found in `phase`. `answer` is the report of an answer that nobody took.
    pub(crate) fn dropped(&self, phase: Phase, answer: Option<Report>) {
        if let Some(token) = self.token {
            token.cancel(Cause::Cancelled, None);
        }
        let id = self.announce(phase, EventKind::Dropped, self.terms.elapsed());
        if let Some(report) = answer {
            self.late.put(report);
            if self.state.verdict.stop() {
                self.report_late(Some(id));
            }
        }
    }

    /// The verdict event, and the late report if the operation has ended by then.
    fn announce(&self, phase: Phase, kind: EventKind<'_>, elapsed: Duration) -> CallId {
        let id = self.terms.id();
        let worker = self.state.worker();
        if phase == Phase::Running {
            abandoned::add(self.state.key(), id, self.terms.name(), worker);
        }
        self.terms.tell(id, kind, elapsed, worker);
        if self.state.verdict.announce() {
            self.report_late(Some(id));
        }
        id
    }

    /// Only the second side to finish calls this, so the report is sent once. `id` is the call's
    /// number, if this side knows it; otherwise the entry among the abandoned operations has it.
    fn report_late(&self, id: Option<CallId>) {
        // Removed before listeners are called: one that calls the function again must find room.
        let ended = abandoned::remove(self.state.key());
        let Some(report) = self.late.take() else {
            return;
        };
        let id = ended.as_ref().map(|ended| ended.call).or(id);
        let id = id.unwrap_or_else(|| self.terms.id());
        let elapsed = self.terms.until(report.at);
        self.terms
            .tell(id, report.late(), elapsed, self.state.worker());
    }
}

/// The operation's side.
impl CallView<'_> {
    /// The operation is about to run on `worker`; `false` if it was withdrawn, or is about to be: nothing starts after the signal.
    pub(crate) fn start_on(&self, worker: Option<WorkerName>) -> bool {
        let has_fired = self.token.is_some_and(|token| token.cause().is_some());
        if has_fired || self.terms.clock().has_reached(self.terms.deadline()) {
            return false;
        }
        if let Some(WorkerName(number)) = worker {
            self.state.worker.store(number, Ordering::Relaxed);
        }
        self.state.verdict.start()
    }

    /// Whether the caller has gone. He may at any time.
    pub(crate) fn is_left(&self) -> bool {
        self.state.verdict.is_left()
    }

    /// The answer has been stored and is published; `false` if the caller has left.
    pub(crate) fn answer(&self) -> bool {
        self.state.verdict.answer()
    }

    /// Whether the result counts, provided that the caller still waits. A panic is never thrown away.
    /// A success may tie with the end of the wait; one that a poll of the caller's returns always
    /// counts, since the caller holds it already. An error must precede the cancellation.
    pub(crate) fn stands(&self, report: &Report) -> bool {
        let terms = self.terms;
        match report.fault() {
            Some(Fault::Panic(_)) => true,
            None => self.state.caller == Caller::Polling || report.at <= terms.end(),
            Some(Fault::Error(_) | Fault::Nothing) => {
                report.at < terms.deadline()
                    && self.token.is_none_or(|token| token.cause().is_none())
            }
        }
    }

    /// The operation has ended and its value is gone. The report is told late, after the verdict event.
    pub(crate) fn stop(&self, report: Report) {
        self.late.put(report);
        if self.state.verdict.stop() {
            self.report_late(None);
        }
    }

    /// The operation was destroyed before it had ended.
    #[cfg(feature = "tokio")]
    pub(crate) fn destroyed(&self) {
        self.stop(Report::unfinished(self.terms.now()));
    }
}
