//! [`Terms`]: the name, times and causes of one call, fixed at its start.

mod policy;

use std::time::Duration;

use crate::event::CallId;
use crate::outcome::{Cause, Reason, TimeoutError};
use crate::time::{Clock, Deadline, Order, Tick};

pub use policy::Policy;
pub(crate) use policy::PolicyRef;

/// The terms of a call.
#[derive(Clone)]
pub(crate) enum Terms {
    /// A call that only its limit can end, if it has one. Small, because this is the usual kind.
    Plain(PlainTerms),
    /// Any other call.
    Full(Box<FullTerms>),
}

/// The limit of a call without a limit, in nanoseconds.
pub(crate) const NO_LIMIT: u64 = u64::MAX;

/// A call that only its limit can end, if it has one, on the real clock.
#[derive(Clone)]
pub(crate) struct PlainTerms {
    pub(crate) policy: PolicyRef,
    pub(crate) id: Option<CallId>,
    pub(crate) start: Tick,
    /// In nanoseconds, or `NO_LIMIT`.
    pub(crate) limit: u64,
}

impl PlainTerms {
    /// The terms of a call. `start` reads the clock; with listeners, the call gets its number
    /// before that.
    #[inline]
    pub(crate) fn new(policy: PolicyRef, limit: u64, start: impl FnOnce(&Policy) -> Tick) -> Self {
        Self {
            id: policy.call_id(),
            start: start(&policy),
            policy,
            limit,
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Tick {
        self.start.plus_nanos(self.limit)
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        (self.limit != NO_LIMIT).then(|| Duration::from_nanos(self.limit))
    }
}

/// The terms of any call.
#[derive(Clone)]
pub(crate) struct FullTerms {
    pub(crate) policy: PolicyRef,
    pub(crate) id: Option<CallId>,
    pub(crate) limit: Option<Duration>,
    pub(crate) grace: Duration,
    /// The clock of all instants in this struct.
    pub(crate) clock: Clock,
    /// That of the caller's alarm on a test clock.
    pub(crate) order: Order,
    pub(crate) start: Tick,
    /// The earliest of the own limit and all inherited or shared deadlines.
    pub(crate) deadline: Tick,
    /// The cause if the deadline passes.
    pub(crate) cause: Cause,
    /// Latest time at which the caller stops waiting: deadline plus grace, at most the end of the
    /// enclosing call.
    pub(crate) end: Tick,
    /// The deadline of the enclosing context, which holds for the token also with `cancel = false`.
    pub(crate) context_deadline: Tick,
}

impl Terms {
    pub(crate) fn policy(&self) -> &Policy {
        match self {
            Self::Plain(call) => &call.policy,
            Self::Full(call) => &call.policy,
        }
    }

    /// The number of the call. Assigned here if there was no listener at its start.
    pub(crate) fn id(&self) -> CallId {
        let id = match self {
            Self::Plain(call) => call.id,
            Self::Full(call) => call.id,
        };
        id.unwrap_or_else(CallId::fresh)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.policy().name
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        match self {
            Self::Plain(call) => call.limit(),
            Self::Full(call) => call.limit,
        }
    }

    pub(crate) fn grace(&self) -> Duration {
        match self {
            Self::Plain(_) => Duration::ZERO,
            Self::Full(call) => call.grace,
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        match self {
            Self::Plain(_) => Clock::Real,
            Self::Full(call) => call.clock,
        }
    }

    pub(crate) fn order(&self) -> Order {
        match self {
            Self::Plain(_) => Order::NONE,
            Self::Full(call) => call.order,
        }
    }

    pub(crate) fn deadline(&self) -> Tick {
        match self {
            Self::Plain(call) => call.deadline(),
            Self::Full(call) => call.deadline,
        }
    }

    /// The cause if the deadline passes.
    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::Plain(_) => Cause::TimedOut,
            Self::Full(call) => call.cause,
        }
    }

    pub(crate) fn end(&self) -> Tick {
        match self {
            Self::Plain(call) => call.deadline(),
            Self::Full(call) => call.end,
        }
    }

    /// The deadline of the enclosing context. That of an enclosing call comes with its token.
    pub(crate) fn context_deadline(&self) -> Tick {
        match self {
            Self::Plain(_) => Tick::NEVER,
            Self::Full(call) => call.context_deadline,
        }
    }

    /// Whether the deadline cancels the token.
    pub(crate) fn cancels_at_deadline(&self) -> bool {
        self.policy().cancel
    }

    /// Latest time at which the caller stops waiting. It limits nested calls. `None` if it does
    /// not.
    pub(crate) fn caller_end(&self) -> Option<Deadline> {
        self.cancels_at_deadline()
            .then(|| Deadline::on(self.clock(), self.end()))
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock().now()
    }

    /// Whether a coarse clock reading shows that the deadline has not passed. `false` means
    /// unknown: read the precise clock.
    pub(crate) fn is_clearly_ahead(&self) -> bool {
        self.clock() == Clock::Real && self.deadline().is_clearly_ahead()
    }

    /// The time since the start of the call.
    pub(crate) fn elapsed(&self) -> Duration {
        self.elapsed_at(self.now())
    }

    /// The time from the start of the call to `at`.
    pub(crate) fn elapsed_at(&self, at: Tick) -> Duration {
        at.since(match self {
            Self::Plain(call) => call.start,
            Self::Full(call) => call.start,
        })
    }

    pub(crate) fn error(
        &self,
        cause: Cause,
        elapsed: Duration,
        started: bool,
        reason: Option<Reason>,
    ) -> TimeoutError {
        TimeoutError::new(self.name(), cause, self.limit(), elapsed, started, reason)
    }
}
