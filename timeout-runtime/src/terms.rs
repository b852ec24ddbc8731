//! [`Terms`]: the name, times and causes of one call, fixed at its start.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use crate::deadline::{Clock, Deadline};
use crate::error::{Cause, Reason, TimeoutError};
use crate::event::clock::OwnClock;
use crate::event::{CallId, Event, EventKind, WorkerName, listener};
use crate::policy::{Policy, PolicyRef};
use crate::tick::Tick;

/// The terms of a call, or of a token without a call. The common kinds are small; the others are
/// boxed.
#[derive(Clone)]
pub(crate) enum Terms {
    /// A token without a call, or a token that uses the terms of its parent.
    None,
    /// A call that only its limit can end.
    Plain(PlainTerms),
    /// Any other call, or a context.
    Full(Box<FullTerms>),
    /// A token that the operation gets before its call starts.
    Unstarted(Box<UnstartedTerms>),
}

/// A call that only its limit can end, on the real clock.
#[derive(Clone)]
pub(crate) struct PlainTerms {
    pub(crate) policy: PolicyRef,
    pub(crate) id: Option<CallId>,
    pub(crate) start: Tick,
    /// In nanoseconds.
    pub(crate) limit: u64,
}

impl PlainTerms {
    /// The terms of a call. `start` reads the clock; with listeners, the call gets its number
    /// before that.
    #[inline]
    pub(crate) fn new(policy: PolicyRef, limit: u64, start: impl FnOnce(&Policy) -> Tick) -> Self {
        Self {
            id: CallId::if_listened_to(&policy),
            start: start(&policy),
            policy,
            limit,
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Tick {
        self.start.plus_nanos(self.limit)
    }
}

/// The terms of any call or context.
#[derive(Clone)]
pub(crate) struct FullTerms {
    pub(crate) policy: PolicyRef,
    pub(crate) id: Option<CallId>,
    pub(crate) limit: Option<Duration>,
    pub(crate) grace: Duration,
    /// The clock of all instants in this struct.
    pub(crate) clock: Clock,
    pub(crate) start: Tick,
    /// The earliest of the own limit and all inherited or shared deadlines.
    pub(crate) deadline: Tick,
    /// The cause if the deadline passes.
    pub(crate) cause: Cause,
    /// Latest time at which the caller stops waiting: deadline plus grace, at most the end of the
    /// enclosing call.
    pub(crate) end: Tick,
    /// When the token is cancelled by the deadline. Nested calls inherit this deadline.
    pub(crate) cancels_at: Tick,
    /// Whether this is a call: entering a call turns `TimedOut` into `DeadlineExceeded`.
    pub(crate) is_call: bool,
}

/// A call before its start, and its terms once it has started.
#[derive(Clone)]
pub(crate) struct UnstartedTerms {
    policy: PolicyRef,
    limit: Option<Duration>,
    started: OnceLock<Terms>,
}

impl Terms {
    /// The terms of a call that has not started.
    pub(crate) fn unstarted(policy: PolicyRef, limit: Option<Duration>) -> Self {
        Self::Unstarted(Box::new(UnstartedTerms {
            policy,
            limit,
            started: OnceLock::new(),
        }))
    }

    /// The terms of a context with this deadline.
    pub(crate) fn context(deadline: Deadline) -> Self {
        let (clock, at) = deadline.parts();
        // Other threads may read the token, so the clock is chosen here.
        let clock = clock.resolved();
        if at.is_never() {
            return Self::None;
        }
        Self::Full(Box::new(FullTerms {
            policy: PolicyRef::Static(&NO_CALL),
            id: None,
            limit: None,
            grace: Duration::ZERO,
            clock,
            start: Tick::NEVER,
            deadline: at,
            cause: Cause::DeadlineExceeded,
            end: at,
            cancels_at: at,
            is_call: false,
        }))
    }

    /// The call has started, with these terms.
    pub(crate) fn begin(&self, terms: &Self) {
        if let Self::Unstarted(call) = self {
            let is_first = call.started.set(terms.clone()).is_ok();
            debug_assert!(is_first, "a call starts once");
        }
    }

    fn known(&self) -> &Self {
        match self {
            Self::Unstarted(call) => call.started.get().unwrap_or(&Self::None),
            terms => terms,
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        match self {
            Self::None => &NO_CALL,
            Self::Plain(call) => &call.policy,
            Self::Full(call) => &call.policy,
            Self::Unstarted(call) => &call.policy,
        }
    }

    /// The number of the call. Assigned here if there was no listener at its start.
    pub(crate) fn id(&self) -> CallId {
        let id = match self.known() {
            Self::Plain(call) => call.id,
            Self::Full(call) => call.id,
            _ => None,
        };
        id.unwrap_or_else(CallId::fresh)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.policy().name
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Plain(call) => Some(Duration::from_nanos(call.limit)),
            Self::Full(call) => call.limit,
            Self::Unstarted(call) => call.limit,
        }
    }

    pub(crate) fn grace(&self) -> Duration {
        match self.known() {
            Self::Full(call) => call.grace,
            _ => Duration::ZERO,
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        match self.known() {
            Self::Full(call) => call.clock,
            _ => Clock::Real,
        }
    }

    pub(crate) fn start(&self) -> Tick {
        match self.known() {
            Self::Plain(call) => call.start,
            Self::Full(call) => call.start,
            _ => Tick::NEVER,
        }
    }

    pub(crate) fn deadline(&self) -> Tick {
        match self.known() {
            Self::Plain(call) => call.deadline(),
            Self::Full(call) => call.deadline,
            _ => Tick::NEVER,
        }
    }

    /// The cause if the deadline passes.
    pub(crate) fn cause(&self) -> Cause {
        match self.known() {
            Self::Plain(_) => Cause::TimedOut,
            Self::Full(call) => call.cause,
            _ => Cause::DeadlineExceeded,
        }
    }

    pub(crate) fn end(&self) -> Tick {
        match self.known() {
            Self::Full(call) => call.end,
            terms => terms.deadline(),
        }
    }

    /// When the token is cancelled by the deadline.
    pub(crate) fn cancels_at(&self) -> Tick {
        match self {
            Self::Plain(call) if call.policy.cancel => call.deadline(),
            Self::Full(call) => call.cancels_at,
            // Such a token is cancelled by the token of its call.
            _ => Tick::NEVER,
        }
    }

    pub(crate) fn is_call(&self) -> bool {
        match self.known() {
            Self::Plain(_) => true,
            Self::Full(call) => call.is_call,
            _ => false,
        }
    }

    /// Whether the deadline cancels the token.
    pub(crate) fn cancels_at_deadline(&self) -> bool {
        self.policy().cancel
    }

    /// Latest time at which the caller stops waiting. It limits nested calls. `None` if it does
    /// not.
    pub(crate) fn caller_end(&self) -> Option<Deadline> {
        (self.is_call() && self.cancels_at_deadline())
            .then(|| Deadline::on(self.clock(), self.end()))
    }

    /// The cause with which the deadline cancels the token.
    pub(crate) fn deadline_cause(&self) -> Cause {
        if self.cancels_at_deadline() {
            self.cause()
        } else {
            Cause::DeadlineExceeded
        }
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock().now()
    }

    /// Whether the deadline that cancels the token has passed, as far as this thread can tell.
    pub(crate) fn is_due(&self) -> bool {
        self.has_reached(self.cancels_at())
    }

    /// Whether the clock of the call has reached `tick`, as far as this thread can tell.
    pub(crate) fn has_reached(&self, tick: Tick) -> bool {
        match self.clock() {
            Clock::Real => Clock::Real.has_reached(tick),
            #[cfg(feature = "tokio")]
            Clock::Tokio => Clock::virtual_now().is_some_and(|now| now >= tick),
        }
    }

    /// Whether a coarse clock reading shows that the deadline has not passed. `false` means
    /// unknown: read the precise clock.
    pub(crate) fn is_clearly_ahead(&self) -> bool {
        self.clock() == Clock::Real && self.deadline().is_clearly_ahead()
    }

    /// The time since the start of the call; zero for a token without a call.
    pub(crate) fn elapsed(&self) -> Duration {
        self.elapsed_at(self.now())
    }

    /// The time from the start of the call to `at`.
    pub(crate) fn elapsed_at(&self, at: Tick) -> Duration {
        at.since(self.start())
    }

    /// Emits an event for the call with the number `id`, if there are listeners.
    pub(crate) fn emit(
        &self,
        id: CallId,
        kind: EventKind<'_>,
        elapsed: Duration,
        worker: Option<WorkerName>,
    ) {
        let policy = self.policy();
        if !policy.has_listeners() {
            return;
        }
        let timestamp = policy.clock.as_ref().and_then(OwnClock::read);
        let event = Event {
            timestamp: timestamp.unwrap_or_else(SystemTime::now),
            call: id,
            name: policy.name,
            worker,
            elapsed,
            limit: self.limit(),
            kind,
        };
        listener::tell(policy.listener.as_ref(), &event);
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

    /// Ends a call whose operation never ran: emits its event and returns its error.
    pub(crate) fn not_started(&self, cause: Cause, reason: Option<Reason>) -> TimeoutError {
        let elapsed = self.elapsed();
        self.emit(self.id(), EventKind::NotStarted(cause), elapsed, None);
        self.error(cause, elapsed, false, reason)
    }
}

/// The policy of tokens without a call.
static NO_CALL: Policy = Policy::new("token");
