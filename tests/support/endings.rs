//! The table of outcomes: what can end a call, and the outcome that the rules demand.

#![allow(unreachable_pub)] // Each test file uses its part.

use timeout_runtime::{CallStatus, Cause, EventKind, Failure, Outcome, TimeoutError};

use super::fault::Fault;
use super::support::{EVERY_WAY, Way};

/// The event that ends the call. All other events come too where possible, but later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    OwnLimit,
    Inherited,
    Shared,
    Upstream,
    Parameter,
    Injected,
    Dropped,
}

/// How the operation behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    StopsWithError,
    StopsWithAnswer,
    /// Runs until the call has ended; where the call waits for it, until the deadline has passed.
    Ignores,
    AnswersFirst,
    FailsFirst,
}

/// How the call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Attribute,
    Policy,
}

#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub source: Source,
    pub way: Way,
    pub body: Body,
    pub graceful: bool,
    pub form: Form,
}

impl Row {
    pub fn table() -> Vec<Self> {
        use Source::{Dropped, Inherited, Injected, OwnLimit, Parameter, Shared, Upstream};
        let mut rows = Vec::new();
        for source in [
            OwnLimit, Inherited, Shared, Upstream, Parameter, Injected, Dropped,
        ] {
            for way in EVERY_WAY {
                for body in [
                    Body::StopsWithError,
                    Body::StopsWithAnswer,
                    Body::Ignores,
                    Body::AnswersFirst,
                    Body::FailsFirst,
                ] {
                    for (graceful, form) in [
                        (false, Form::Attribute),
                        (false, Form::Policy),
                        (true, Form::Attribute),
                        (true, Form::Policy),
                    ] {
                        rows.push(Self {
                            source,
                            way,
                            body,
                            graceful,
                            form,
                        });
                    }
                }
            }
        }
        rows.retain(|row| row.is_decided());
        rows
    }

    /// Whether such a call exists and has only one possible outcome.
    fn is_decided(self) -> bool {
        let has_future = !matches!(self.way, Way::SyncWorker | Way::SyncInline);
        let exists = match self.source {
            Source::Dropped => has_future,
            Source::Shared | Source::Parameter => self.form == Form::Attribute,
            _ => true,
        };
        // A result right after a cancellation races with the caller, which may have left.
        let is_race = self.is_cancelled()
            && self.body == Body::StopsWithAnswer
            && !self.graceful
            && self.way.abandons()
            && self.source != Source::Dropped;
        exists && !is_race
    }

    pub fn is_cancelled(self) -> bool {
        self.cause() == Cause::Cancelled
    }

    pub fn is_first(self) -> bool {
        matches!(self.body, Body::AnswersFirst | Body::FailsFirst)
    }

    fn cause(self) -> Cause {
        match self.source {
            Source::OwnLimit => Cause::TimedOut,
            Source::Inherited | Source::Shared => Cause::DeadlineExceeded,
            _ => Cause::Cancelled,
        }
    }

    /// Whether a result that follows the cancellation still reaches the caller.
    fn is_awaited_after_the_signal(self) -> bool {
        let is_in_place = !self.way.abandons();
        // A success returned by a poll in place is never dropped.
        if self.way == Way::AsyncInline && self.source != Source::Dropped {
            return true;
        }
        match self.source {
            // No call waits past the enclosing deadline.
            Source::Dropped | Source::Inherited => false,
            Source::OwnLimit | Source::Shared => self.graceful,
            // An inline operation ends before its caller checks the token.
            _ => self.graceful || is_in_place,
        }
    }

    /// The outcome that the rules demand.
    pub fn ending(self) -> Ending {
        let failed = || Failure::Error(WORDS.into());
        let answers = !matches!(self.body, Body::StopsWithError | Body::FailsFirst);
        let is_caller_there = self.source != Source::Dropped || !self.way.abandons();
        if self.is_first() && is_caller_there {
            return if answers {
                Ending::answered(CallStatus::Ok, None, EventKind::Succeeded)
            } else {
                Ending::answered(CallStatus::Failed, None, EventKind::Failed(failed()))
            };
        }
        let comes_in_time = match self.body {
            Body::StopsWithAnswer => self.is_awaited_after_the_signal(),
            // A sync inline call ends only with its operation; it succeeds unless the deadline
            // passed.
            Body::Ignores => self.way == Way::SyncInline && self.is_cancelled(),
            _ => false,
        };
        if comes_in_time {
            return Ending::answered(CallStatus::Ok, Some(self.cause()), EventKind::Succeeded);
        }
        let (status, verdict) = match (self.source, self.cause()) {
            (Source::Dropped, _) => (None, EventKind::Dropped),
            (_, Cause::TimedOut) => (Some(CallStatus::TimedOut), EventKind::TimedOut),
            (_, Cause::DeadlineExceeded) => (
                Some(CallStatus::DeadlineExceeded),
                EventKind::DeadlineExceeded,
            ),
            _ => (Some(CallStatus::UpstreamCancelled), EventKind::Cancelled),
        };
        // A future polled in place is dropped unfinished if it does not end by itself, or if its
        // call is dropped.
        let is_destroyed = self.way == Way::AsyncInline
            && (self.body == Body::Ignores || self.source == Source::Dropped);
        let late = if answers {
            EventKind::AbandonedWorkerSucceeded
        } else {
            EventKind::AbandonedWorkerFailed(failed())
        };
        Ending {
            status,
            error: status.map(|_| self.cause()),
            events: std::iter::once(verdict)
                .chain((!is_destroyed).then_some(late))
                .collect(),
            token: Some(self.cause()),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Ending {
    /// `None` if the call was dropped.
    pub status: Option<CallStatus>,
    pub error: Option<Cause>,
    pub events: Vec<EventKind<'static>>,
    /// The cause of the operation's token from the outcome event on.
    pub token: Option<Cause>,
}

impl Ending {
    fn answered(status: CallStatus, token: Option<Cause>, event: EventKind<'static>) -> Self {
        Self {
            status: Some(status),
            error: None,
            events: vec![event],
            token,
        }
    }
}

/// The result of an operation.
pub type Answer = Result<u32, Fault>;

/// The text of an operation's error in events.
pub const WORDS: &str = "Own";

/// Converts the outcome into a result, and asserts that both report the same status and cause.
pub fn told_apart(outcome: Outcome<u32, Fault>) -> Answer {
    let (status, error) = (outcome.status(), outcome.timeout_error().cloned());
    let answer = outcome.into_result();
    let (told, why) = read(&answer);
    assert_eq!(told, status);
    assert_eq!(
        why.map(TimeoutError::cause),
        error.map(|error| error.cause())
    );
    answer
}

pub fn read(answer: &Answer) -> (CallStatus, Option<&TimeoutError>) {
    match answer {
        Ok(_) => (CallStatus::Ok, None),
        Err(Fault::Own) => (CallStatus::Failed, None),
        Err(Fault::Ended(error)) => (error.status(), Some(error)),
    }
}
