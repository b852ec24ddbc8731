//! The table of outcomes: what can end a call, and the outcome that the rules demand.

#![allow(unreachable_pub)] // Each test file uses its part.

use timeout_runtime::{CallStatus, Cause, EventKind, Failure, Outcome, TimeoutError};

use super::call_error::CallError;
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
    /// Converts the error of its token into its own.
    Stops,
    StopsWithError,
    StopsWithSuccess,
    /// Runs until the call has ended; where the call waits for it, until the deadline has passed.
    Ignores,
    SucceedsFirst,
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
                    Body::Stops,
                    Body::StopsWithError,
                    Body::StopsWithSuccess,
                    Body::Ignores,
                    Body::SucceedsFirst,
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
            && self.body == Body::StopsWithSuccess
            && !self.graceful
            && self.way.abandons()
            && self.source != Source::Dropped;
        exists && !is_race
    }

    pub fn is_cancelled(self) -> bool {
        self.cause() == Cause::Cancelled
    }

    pub fn is_first(self) -> bool {
        matches!(self.body, Body::SucceedsFirst | Body::FailsFirst)
    }

    fn cause(self) -> Cause {
        match self.source {
            Source::OwnLimit => Cause::TimedOut,
            Source::Inherited | Source::Shared => Cause::DeadlineExceeded,
            _ => Cause::Cancelled,
        }
    }

    /// Whether a result that follows the cancellation still reaches the caller.
    fn counts_after_the_cancellation(self) -> bool {
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
    pub fn outcome(self) -> Expected {
        let failed = || Failure::Error(WORDS.into());
        let succeeds = !matches!(
            self.body,
            Body::Stops | Body::StopsWithError | Body::FailsFirst
        );
        let is_caller_there = self.source != Source::Dropped || !self.way.abandons();
        if self.is_first() && is_caller_there {
            return if succeeds {
                Expected::with_result(CallStatus::Ok, None, EventKind::Succeeded)
            } else {
                Expected::with_result(CallStatus::Failed, None, EventKind::Failed(failed()))
            };
        }
        let comes_in_time = match self.body {
            Body::StopsWithSuccess => self.counts_after_the_cancellation(),
            // A sync inline call ends only with its operation; it succeeds unless the deadline
            // passed.
            Body::Ignores => self.way == Way::SyncInline && self.is_cancelled(),
            _ => false,
        };
        if comes_in_time {
            return Expected::with_result(CallStatus::Ok, Some(self.cause()), EventKind::Succeeded);
        }
        let (status, outcome_event) = match (self.source, self.cause()) {
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
        let late = if succeeds {
            EventKind::AbandonedWorkerSucceeded
        } else if self.body == Body::Stops {
            EventKind::AbandonedWorkerStopped(failed())
        } else {
            EventKind::AbandonedWorkerFailed(failed())
        };
        Expected {
            status,
            error: status.map(|_| self.cause()),
            events: std::iter::once(outcome_event)
                .chain((!is_destroyed).then_some(late))
                .collect(),
            token: Some(self.cause()),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Expected {
    /// `None` if the call was dropped.
    pub status: Option<CallStatus>,
    pub error: Option<Cause>,
    pub events: Vec<EventKind<'static>>,
    /// The cause of the operation's token from the outcome event on.
    pub token: Option<Cause>,
}

impl Expected {
    fn with_result(status: CallStatus, token: Option<Cause>, event: EventKind<'static>) -> Self {
        Self {
            status: Some(status),
            error: None,
            events: vec![event],
            token,
        }
    }
}

/// The result of an operation.
pub type CallResult = Result<u32, CallError>;

/// The text of an operation's error in events.
pub const WORDS: &str = "Own";

/// Converts the outcome into a result, and asserts that both report the same status and cause.
pub fn checked_result(outcome: Outcome<u32, CallError>) -> CallResult {
    let (status, error) = (outcome.status(), outcome.timeout_error().cloned());
    let result = CallResult::from(outcome);
    let (read_status, read_error) = read(&result);
    assert_eq!(read_status, status);
    assert_eq!(
        read_error.map(TimeoutError::cause),
        error.map(|error| error.cause())
    );
    result
}

pub fn read(result: &CallResult) -> (CallStatus, Option<&TimeoutError>) {
    match result {
        Ok(_) => (CallStatus::Ok, None),
        Err(CallError::Own) => (CallStatus::Failed, None),
        Err(CallError::Timeout(error)) => (error.status(), Some(error)),
    }
}
