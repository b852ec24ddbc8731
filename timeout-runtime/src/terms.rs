//! [`Terms`]: what holds for one call from its entry to its end.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use crate::deadline::{Clock, Deadline};
use crate::error::{Cause, Reason, TimeoutError};
use crate::event::clock::OwnClock;
use crate::event::{CallId, Event, EventKind, WorkerName, listener};
use crate::policy::{Policy, PolicyRef};
use crate::tick::Tick;

/// The terms of a call, or of a token that belongs to none. Those that most calls have are small; others are boxed.
#[derive(Clone)]
pub(crate) enum Terms {
    /// Of a token that belongs to no call, or speaks for the one above it.
    None,
    /// Of a call with a limit, and with nothing else that could end it.
    Plain(PlainTerms),
    /// Of a call that has more, or of a context.
    Full(Box<FullTerms>),
    /// Of a token that is given out before its call begins.
    Ahead(Box<Ahead>),
}

/// A call with a limit, and with nothing else that could end it, by the system's clock.
#[derive(Clone)]
pub(crate) struct PlainTerms {
    pub(crate) policy: PolicyRef,
    pub(crate) id: Option<CallId>,
    pub(crate) start: Tick,
    /// In nanoseconds.
    pub(crate) limit: u64,
}

impl PlainTerms {
    /// Of a call whose start is read by `start`, which gets its number before that if it is heard.
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

/// All there is.
#[derive(Clone)]
pub(crate) struct FullTerms {
    pub(crate) policy: PolicyRef,
    pub(crate) id: Option<CallId>,
    pub(crate) limit: Option<Duration>,
    pub(crate) grace: Duration,
    /// The clock of all times in here.
    pub(crate) clock: Clock,
    pub(crate) start: Tick,
    /// The nearest of the call's own limit and what it inherits or shares.
    pub(crate) deadline: Tick,
    /// What passing it means.
    pub(crate) cause: Cause,
    /// When the caller is gone at the latest: the deadline and the grace, within the end of the call around this one.
    pub(crate) end: Tick,
    /// When the token fires by itself, and what calls inside inherit.
    pub(crate) cancels_at: Tick,
    /// Whether this is a call: causes are translated where they enter one.
    pub(crate) is_call: bool,
}

/// What is known of a call that has not begun, and then its terms.
#[derive(Clone)]
pub(crate) struct Ahead {
    policy: PolicyRef,
    limit: Option<Duration>,
    begun: OnceLock<Terms>,
}

impl Terms {
    /// Of a call that has not begun.
    pub(crate) fn ahead(policy: PolicyRef, limit: Option<Duration>) -> Self {
        Self::Ahead(Box::new(Ahead {
            policy,
            limit,
            begun: OnceLock::new(),
        }))
    }

    /// Of what runs inside a context that no call has made.
    pub(crate) fn context(deadline: Deadline) -> Self {
        let (clock, at) = deadline.parts();
        // Readers of its token may be anywhere, so it is settled here whose time it is.
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

    /// The call has begun, with these terms.
    pub(crate) fn begin(&self, terms: &Self) {
        if let Self::Ahead(ahead) = self {
            let news = ahead.begun.set(terms.clone()).is_ok();
            debug_assert!(news, "a call begins once");
        }
    }

    fn known(&self) -> &Self {
        match self {
            Self::Ahead(ahead) => ahead.begun.get().unwrap_or(&Self::None),
            terms => terms,
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        match self {
            Self::None => &NO_CALL,
            Self::Plain(call) => &call.policy,
            Self::Full(call) => &call.policy,
            Self::Ahead(call) => &call.policy,
        }
    }

    /// The call's number, given now if nobody listened when it began.
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
            Self::Ahead(call) => call.limit,
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

    /// What it means that the deadline has passed.
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

    /// When the token fires by itself.
    pub(crate) fn cancels_at(&self) -> Tick {
        match self {
            Self::Plain(call) if call.policy.cancel => call.deadline(),
            Self::Full(call) => call.cancels_at,
            // A token that was made ahead hears its call's.
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

    /// Whether the deadline fires the token.
    pub(crate) fn cancels_at_deadline(&self) -> bool {
        self.policy().cancel
    }

    /// When the call's caller is gone at the latest, which binds the calls inside; `None` if it does not.
    pub(crate) fn caller_end(&self) -> Option<Deadline> {
        (self.is_call() && self.cancels_at_deadline())
            .then(|| Deadline::on(self.clock(), self.end()))
    }

    /// The cause with which the token fires by itself.
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

    /// Whether it is time for the token to fire by itself, as far as can be told here.
    pub(crate) fn is_due(&self) -> bool {
        self.has_reached(self.cancels_at())
    }

    /// Whether the call's clock has reached `tick`, as far as this thread can tell.
    pub(crate) fn has_reached(&self, tick: Tick) -> bool {
        match self.clock() {
            Clock::Real => Clock::Real.has_reached(tick),
            #[cfg(feature = "tokio")]
            Clock::Tokio => Clock::virtual_now().is_some_and(|now| now >= tick),
        }
    }

    /// Whether the deadline is so far ahead that a glance tells. `false` says nothing: read the clock.
    pub(crate) fn is_clearly_ahead(&self) -> bool {
        self.clock() == Clock::Real && self.deadline().is_clearly_ahead()
    }

    /// How long the call has been under way; zero for a token that belongs to none.
    pub(crate) fn elapsed(&self) -> Duration {
        self.until(self.now())
    }

    /// How long the call had been under way at `at`.
    pub(crate) fn until(&self, at: Tick) -> Duration {
        at.since(self.start())
    }

    /// Tells the listeners, if there are any, what has happened to the call that they are to know by `id`.
    pub(crate) fn tell(
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
        let stamped = policy.clock.as_ref().and_then(OwnClock::read);
        let event = Event {
            timestamp: stamped.unwrap_or_else(SystemTime::now),
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

    /// The verdict of a call whose operation never ran.
    pub(crate) fn not_started(&self, cause: Cause, reason: Option<Reason>) -> TimeoutError {
        let elapsed = self.elapsed();
        self.tell(self.id(), EventKind::NotStarted(cause), elapsed, None);
        self.error(cause, elapsed, false, reason)
    }
}

/// What tokens go by that belong to no call.
static NO_CALL: Policy = Policy::new("token");
