//! The two sides of a call, the same for every way to run: the caller looks, leaves and announces, the operation answers or stops.

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{Cause, TimeoutError};
use crate::event::{EventKind, Failure, WorkerName};
use crate::returns::Ending;
use crate::sync::lock;
use crate::terms::Terms;
use crate::tick::Tick;
use crate::token::node::Node;
use crate::unwind::{self, Payload};
use crate::workers::abandoned;

use super::verdict::{Phase, Verdict};

/// How an operation tells an answer from an error.
pub(crate) type Classify<R> = for<'a> fn(&'a R) -> Ending<'a>;

/// What an operation ended with: a value, or a panic.
pub(crate) type Ended<R> = Result<R, Payload>;

/// What both sides of a call change.
pub(crate) struct State {
    verdict: Verdict,
    late: Mutex<Option<Report>>,
    /// The number in the worker's name; zero where no worker has taken the operation.
    worker: AtomicU64,
}

impl State {
    /// Of a call whose operation waits for somebody to run it.
    pub(crate) fn queued() -> Self {
        Self {
            verdict: Verdict::new(),
            late: Mutex::new(None),
            worker: AtomicU64::new(0),
        }
    }

    /// Of a call whose operation runs where its caller is. Nobody else sees it, so it may be made anew for each look.
    pub(crate) fn started() -> Self {
        let state = Self::queued();
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
}

/// A call, as both its sides see it.
#[derive(Clone, Copy)]
pub(crate) struct Sides<'a> {
    pub(crate) terms: &'a Terms,
    pub(crate) state: &'a State,
    /// Its token, unless nobody has asked for one.
    pub(crate) token: Option<&'a Node>,
}

/// The operation's own account of its end.
pub(crate) struct Report {
    at: Tick,
    failure: Option<Failure<'static>>,
    kind: Kind,
}

impl Report {
    fn is_unfinished(&self) -> bool {
        matches!(self.failure, Some(Failure::Unfinished))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answer,
    Error,
    Nothing,
    Panic,
}

/// What the caller sees when it looks.
pub(crate) enum Look {
    /// The answer is there.
    Answered,
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
    pub(crate) fn is_signalled(&self) -> bool {
        self.over.is_some()
    }
}

/// The caller's side.
impl Sides<'_> {
    /// Where the call stands. Gives the signal if it is due.
    pub(crate) fn look(&self, wait: &mut Wait) -> Look {
        let phase = self.state.verdict.phase();
        match phase {
            Phase::Answered => return Look::Answered,
            Phase::Stopped => return Look::Over,
            Phase::Queued | Phase::Running => {}
        }
        let terms = self.terms;
        let now = terms.now();
        if wait.over.is_none() {
            if self.token.is_some_and(|token| token.fired().is_some()) {
                wait.over = Some(now.plus(terms.grace).min(terms.end));
            } else if now >= terms.deadline {
                self.signal();
                wait.over = Some(terms.end);
            }
        }
        match wait.over {
            None => Look::Wait(terms.deadline),
            Some(over) if phase == Phase::Queued || now >= over => Look::Over,
            Some(over) => Look::Wait(over),
        }
    }

    /// The deadline has come: the token fires, if that is what the call's policy says.
    fn signal(&self) {
        if self.terms.fires()
            && let Some(token) = self.token
        {
            token.fire(self.terms.cause, None);
        }
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
            token.settle();
        }
        let elapsed = report.at.since(self.terms.start);
        let kind = match report.failure {
            None => EventKind::Succeeded,
            Some(failure) => EventKind::Failed(failure),
        };
        self.terms.tell(kind, elapsed, self.state.worker());
    }

    /// The verdict of a call that the caller left, finding it in `phase`: its event, its error, and the late report if the
    /// operation has ended by now. `scarce` says that it was queued for want of a worker.
    pub(crate) fn unanswered(&self, phase: Phase, scarce: bool) -> TimeoutError {
        let terms = self.terms;
        self.signal();
        let signal = self.token.and_then(Node::signal);
        let (cause, reason) = signal.unwrap_or((terms.cause, None));
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
            let mut late = lock(&self.state.late);
            if late.as_ref().is_some_and(Report::is_unfinished) {
                *late = None;
            }
        }
        self.announce(phase, kind, elapsed);
        error
    }

    /// The ending of a call whose future was dropped, found in `phase`. `answer` is the report of an answer that nobody took.
    pub(crate) fn dropped(&self, phase: Phase, answer: Option<Report>) {
        if let Some(token) = self.token {
            token.fire(Cause::Cancelled, None);
        }
        self.announce(phase, EventKind::Dropped, self.terms.elapsed());
        if let Some(report) = answer {
            self.stop(report);
        }
    }

    /// The verdict event, and the late report if the operation has ended by then.
    fn announce(&self, phase: Phase, kind: EventKind<'_>, elapsed: Duration) {
        if phase == Phase::Running {
            abandoned::add(self.terms.id, self.terms.name(), self.state.worker());
        }
        self.terms.tell(kind, elapsed, self.state.worker());
        if self.state.verdict.announce() {
            self.report_late();
        }
    }

    /// Who comes here is the second of the two, so it is done once.
    fn report_late(&self) {
        let report = lock(&self.state.late).take();
        if let Some(Report { at, failure, .. }) = report {
            let kind = match failure {
                None => EventKind::AbandonedWorkerSucceeded,
                Some(failure) => EventKind::AbandonedWorkerFailed(failure),
            };
            let elapsed = at.since(self.terms.start);
            self.terms.tell(kind, elapsed, self.state.worker());
        }
        abandoned::remove(self.terms.id);
    }
}

/// The operation's side.
impl Sides<'_> {
    /// The operation is about to run on `worker`; `false` if it was withdrawn, or is about to be: nothing starts after the signal.
    pub(crate) fn start_on(&self, worker: Option<WorkerName>) -> bool {
        let has_fired = self.token.is_some_and(|token| token.fired().is_some());
        if has_fired || self.terms.now() >= self.terms.deadline {
            return false;
        }
        if let Some(WorkerName(number)) = worker {
            self.state.worker.store(number, Ordering::Relaxed);
        }
        self.state.verdict.start()
    }

    /// The answer has been stored and is published; `false` if the caller has left.
    pub(crate) fn answer(&self) -> bool {
        self.state.verdict.answer()
    }

    /// What the operation ended with, by its own clock, and what it means. A panic while that is found out takes its place.
    pub(crate) fn assess<R>(&self, ended: Ended<R>, classify: Classify<R>) -> (Ended<R>, Report) {
        let at = self.terms.now();
        let heard = self.terms.is_heard();
        let found = match &ended {
            Err(payload) => Ok((Kind::Panic, Some(panic_failure(payload, heard)))),
            Ok(value) => unwind::catch(|| match classify(value) {
                Ending::Answer => (Kind::Answer, None),
                Ending::Error(error) => (Kind::Error, Some(error_failure(error, heard))),
                Ending::Nothing => (Kind::Nothing, None),
            }),
        };
        match found {
            Ok((kind, failure)) => (ended, Report { at, failure, kind }),
            Err(payload) => {
                unwind::dispose(ended);
                let failure = Some(panic_failure(&payload, heard));
                let kind = Kind::Panic;
                (Err(payload), Report { at, failure, kind })
            }
        }
    }

    /// Whether the answer counts, provided that the caller is still there: a success may tie with the end of the wait, an error
    /// must precede the signal, a panic is never thrown away.
    pub(crate) fn stands(&self, report: &Report) -> bool {
        let terms = self.terms;
        match report.kind {
            Kind::Panic => true,
            Kind::Answer => report.at <= terms.end,
            Kind::Error | Kind::Nothing => {
                report.at < terms.deadline && self.token.is_none_or(|token| token.fired().is_none())
            }
        }
    }

    /// The operation has ended and its value is gone. The report is told late, after the verdict event.
    pub(crate) fn stop(&self, mut report: Report) {
        if report.kind == Kind::Nothing {
            // No value at or after the signal counts like an error.
            report.failure = Some(Failure::Error("None".into()));
        }
        *lock(&self.state.late) = Some(report);
        if self.state.verdict.stop() {
            self.report_late();
        }
    }

    /// The operation was destroyed before it had ended.
    #[cfg(feature = "tokio")]
    pub(crate) fn destroyed(&self) {
        self.stop(Report {
            at: self.terms.now(),
            failure: Some(Failure::Unfinished),
            kind: Kind::Error,
        });
    }
}

fn panic_failure(payload: &Payload, heard: bool) -> Failure<'static> {
    Failure::Panic(if heard {
        unwind::text(payload).to_owned().into()
    } else {
        "".into()
    })
}

/// An error's text is somebody else's code, and is asked for only if it is heard.
fn error_failure(error: &dyn Debug, heard: bool) -> Failure<'static> {
    if !heard {
        return Failure::Error("".into());
    }
    let text = unwind::catch(|| format!("{error:?}")).unwrap_or_else(|payload| {
        unwind::dispose(payload);
        "an error whose `Debug` panics".to_owned()
    });
    Failure::Error(text.into())
}
