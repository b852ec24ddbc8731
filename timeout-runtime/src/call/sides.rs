//! The two sides of a call, the same for every way to run: the caller looks, leaves and announces, the operation answers or stops.

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::deadline::Deadline;
use crate::error::{Cause, TimeoutError};
use crate::event::{EventKind, Failure, WorkerName};
use crate::returns::Ending;
use crate::sync::lock;
use crate::token::node::Node;
use crate::unwind::{self, Payload};
use crate::workers::abandoned;

use super::terms::Terms;
use super::verdict::{Phase, Verdict};

/// How an operation tells an answer from an error.
pub(crate) type Classify<R> = for<'a> fn(&'a R) -> Ending<'a>;

/// What an operation ended with: a value, or a panic.
pub(crate) type Ended<R> = Result<R, Payload>;

/// What both sides of a call share, apart from its value.
pub(crate) struct Shared {
    pub(crate) terms: Terms,
    pub(crate) verdict: Verdict,
    late: Mutex<Option<Report>>,
    /// The number in the worker's name; zero where no worker has taken the operation.
    worker: AtomicU64,
}

/// The operation's own account of its end.
pub(crate) struct Report {
    at: Instant,
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
    Wait(Deadline),
}

/// How far the caller has got in its wait.
#[derive(Default)]
pub(crate) struct Wait {
    /// When the wait is over, once the signal has been seen or given.
    over: Option<Deadline>,
}

impl Wait {
    /// Whether the signal has been seen or given.
    pub(crate) fn is_signalled(&self) -> bool {
        self.over.is_some()
    }
}

impl Shared {
    pub(crate) fn new(terms: Terms) -> Self {
        Self {
            terms,
            verdict: Verdict::new(),
            late: Mutex::new(None),
            worker: AtomicU64::new(0),
        }
    }

    /// A call whose operation runs where its caller is.
    pub(crate) fn started(terms: Terms) -> Self {
        let shared = Self::new(terms);
        let started = shared.verdict.start();
        debug_assert!(started, "nobody else has seen this call");
        shared
    }

    fn worker(&self) -> Option<WorkerName> {
        match self.worker.load(Ordering::Relaxed) {
            0 => None,
            number => Some(WorkerName(number)),
        }
    }

    /// The operation is about to run on `worker`; `false` if it was withdrawn.
    pub(crate) fn start_on(&self, worker: Option<WorkerName>) -> bool {
        if let Some(WorkerName(number)) = worker {
            self.worker.store(number, Ordering::Relaxed);
        }
        self.verdict.start()
    }
}

/// The caller's side.
impl Shared {
    /// Where the call stands. Gives the signal if it is due.
    pub(crate) fn look(&self, wait: &mut Wait, token: Option<&Node>) -> Look {
        let phase = self.verdict.phase();
        match phase {
            Phase::Answered => return Look::Answered,
            Phase::Stopped => return Look::Over,
            Phase::Queued | Phase::Running => {}
        }
        let terms = &self.terms;
        let now = terms.now();
        if wait.over.is_none() {
            if token.is_some_and(|token| token.fired().is_some()) {
                let clock = terms.clock();
                let over = Deadline::on(clock, now.checked_add(terms.grace));
                wait.over = Some(over.min(terms.end));
            } else if terms.deadline.passed_at(now) {
                if terms.fires
                    && let Some(token) = token
                {
                    token.fire(terms.cause, None);
                }
                wait.over = Some(terms.end);
            }
        }
        match wait.over {
            None => Look::Wait(terms.deadline),
            Some(over) if phase == Phase::Queued || over.passed_at(now) => Look::Over,
            Some(over) => Look::Wait(over),
        }
    }

    /// The caller leaves an operation that it has just dropped where it was: it does not run on.
    pub(crate) fn leave_dropped(&self) -> Phase {
        let late = self.verdict.stop();
        debug_assert!(!late, "the caller has announced nothing yet");
        self.verdict.leave()
    }

    /// The verdict of a call that was answered: its event. The token forgets the deadline.
    pub(crate) fn answered(&self, report: Report, token: Option<&Node>) {
        if let Some(token) = token {
            token.settle();
        }
        let elapsed = self.terms.elapsed_at(report.at);
        let kind = match report.failure {
            None => EventKind::Succeeded,
            Some(failure) => EventKind::Failed(failure),
        };
        self.terms.tell(kind, elapsed, self.worker());
    }

    /// The verdict of a call that the caller left, finding it in `phase`: its event, its error, and the late report if the
    /// operation has ended by now. `scarce` says that it was queued for want of a worker.
    pub(crate) fn unanswered(
        &self,
        phase: Phase,
        token: Option<&Node>,
        scarce: bool,
    ) -> TimeoutError {
        let terms = &self.terms;
        if terms.fires
            && let Some(token) = token
        {
            token.fire(terms.cause, None);
        }
        let (cause, reason) = token.and_then(Node::signal).unwrap_or((terms.cause, None));
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
        let elapsed = terms.elapsed_at(terms.now());
        let error = terms.error(cause, elapsed, true, reason);
        if phase == Phase::Stopped {
            // To a caller who still waits, an operation that was destroyed is a cancellation and no more.
            let mut late = lock(&self.late);
            if late.as_ref().is_some_and(Report::is_unfinished) {
                *late = None;
            }
        }
        self.announce(phase, kind, elapsed);
        error
    }

    /// The ending of a call whose future was dropped, found in `phase`. `answer` is the report of an answer that nobody took.
    pub(crate) fn dropped(&self, phase: Phase, token: Option<&Node>, answer: Option<Report>) {
        if let Some(token) = token {
            token.fire(Cause::Cancelled, None);
        }
        let elapsed = self.terms.elapsed_at(self.terms.now());
        self.announce(phase, EventKind::Dropped, elapsed);
        if let Some(report) = answer {
            self.stop(report);
        }
    }

    /// The verdict event, and the late report if the operation has ended by then.
    fn announce(&self, phase: Phase, kind: EventKind<'_>, elapsed: Duration) {
        if phase == Phase::Running {
            abandoned::add(self.terms.id, self.terms.policy.name, self.worker());
        }
        self.terms.tell(kind, elapsed, self.worker());
        if self.verdict.announce() {
            self.report_late();
        }
    }

    /// Who comes here is the second of the two, so it is done once.
    fn report_late(&self) {
        let report = lock(&self.late).take();
        if let Some(Report { at, failure, .. }) = report {
            let kind = match failure {
                None => EventKind::AbandonedWorkerSucceeded,
                Some(failure) => EventKind::AbandonedWorkerFailed(failure),
            };
            self.terms
                .tell(kind, self.terms.elapsed_at(at), self.worker());
        }
        abandoned::remove(self.terms.id);
    }
}

/// The operation's side.
impl Shared {
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
    pub(crate) fn stands(&self, report: &Report, token: Option<&Node>) -> bool {
        let terms = &self.terms;
        match report.kind {
            Kind::Panic => true,
            Kind::Answer => terms.end.instant().is_none_or(|end| report.at <= end),
            Kind::Error | Kind::Nothing => {
                !terms.deadline.passed_at(report.at)
                    && token.is_none_or(|token| token.fired().is_none())
            }
        }
    }

    /// The operation has ended and its value is gone. The report is told late, after the verdict event.
    pub(crate) fn stop(&self, mut report: Report) {
        if report.kind == Kind::Nothing {
            // No value at or after the signal counts like an error.
            report.failure = Some(Failure::Error("None".into()));
        }
        *lock(&self.late) = Some(report);
        if self.verdict.stop() {
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
