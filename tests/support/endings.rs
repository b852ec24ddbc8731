//! The table of all endings: what can end a call, and what the rules say that it ends with.

#![allow(unreachable_pub)] // Each test file uses its part.

use timeout_runtime::{CallStatus, Cause, EventKind, Failure, Outcome, TimeoutError};

use super::fault::Fault;
use super::support::{EVERY_WAY, Way};

/// What ends the call. All the others are there too where they can be, and later.
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

/// What the operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    StopsWithError,
    StopsWithAnswer,
    /// It runs on until the call has ended, or, where that ends with it, until the end lies behind.
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

    /// Whether there is such a call, and only one way for it to end.
    fn is_decided(self) -> bool {
        let has_future = !matches!(self.way, Way::SyncWorker | Way::SyncInline);
        let exists = match self.source {
            Source::Dropped => has_future,
            Source::Shared | Source::Parameter => self.form == Form::Attribute,
            _ => true,
        };
        // An answer on the heels of a cancellation may find the caller there or gone.
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

    /// Whether an answer that follows the signal still finds the caller.
    fn is_awaited_after_the_signal(self) -> bool {
        let is_in_place = !self.way.abandons();
        // What a poll in place returns is never thrown away.
        if self.way == Way::AsyncInline && self.source != Source::Dropped {
            return true;
        }
        match self.source {
            // Nobody outstays the end of what is around him.
            Source::Dropped | Source::Inherited => false,
            Source::OwnLimit | Source::Shared => self.graceful,
            // In place the operation has its say before its caller looks at the token.
            _ => self.graceful || is_in_place,
        }
    }

    /// The rules.
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
            // There the wait has no end but the operation's, unless it is the limit.
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
        // What is polled in place is dropped unfinished if it does not end by itself, or if its caller goes.
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
    /// `None` where nobody is left to be told.
    pub status: Option<CallStatus>,
    pub error: Option<Cause>,
    pub events: Vec<EventKind<'static>>,
    /// The cause of the operation's token, from the verdict event on.
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

/// What an operation ends with.
pub type Answer = Result<u32, Fault>;

/// The error of an operation that fails, as events have it.
pub const WORDS: &str = "Own";

/// An outcome as a result, which says the same.
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
