//! [`Terms`]: what holds for one call from its entry to its end.

use std::time::{Duration, SystemTime};

use crate::deadline::{Clock, Deadline};
use crate::error::{Cause, Reason, TimeoutError};
use crate::event::{CallId, Event, EventKind, WorkerName, listener};
use crate::policy::{Policy, PolicyRef};
use crate::tick::Tick;
use crate::unwind::Kept;
use crate::{frame, unwind};

/// The terms of a call, or of a token that belongs to none.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) policy: PolicyRef,
    pub(crate) id: CallId,
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
    pub(crate) signal: Tick,
    /// Whether this is a call: causes are translated where they enter one.
    pub(crate) is_call: bool,
}

impl Terms {
    /// Of a token that belongs to no call and has no deadline.
    pub(crate) fn none() -> Self {
        static TOKEN: Policy = Policy::new("token");

        Self {
            policy: PolicyRef::Static(&TOKEN),
            id: CallId(0),
            limit: None,
            grace: Duration::ZERO,
            clock: Clock::Real,
            start: Tick::NEVER,
            deadline: Tick::NEVER,
            cause: Cause::DeadlineExceeded,
            end: Tick::NEVER,
            signal: Tick::NEVER,
            is_call: false,
        }
    }

    /// Of a call that has not begun, as far as they are known.
    pub(crate) fn ahead(policy: PolicyRef, limit: Option<Duration>) -> Self {
        Self {
            policy,
            limit,
            ..Self::none()
        }
    }

    /// Of what runs inside a context that no call has made.
    pub(crate) fn context(deadline: Deadline) -> Self {
        let (clock, at) = deadline.parts();
        Self {
            clock,
            deadline: at,
            end: at,
            signal: at,
            ..Self::none()
        }
    }

    /// Of a token that is linked below this one: it speaks of the same call, and hears of its deadline.
    pub(crate) fn linked(&self) -> Self {
        Self {
            deadline: Tick::NEVER,
            end: Tick::NEVER,
            signal: Tick::NEVER,
            is_call: false,
            ..self.clone()
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.policy.name
    }

    /// Whether the deadline fires the token.
    pub(crate) fn fires(&self) -> bool {
        self.policy.cancel
    }

    /// When the call's caller is gone at the latest, which binds the calls inside; `None` if it does not.
    pub(crate) fn caller_end(&self) -> Option<Deadline> {
        (self.is_call && self.fires()).then(|| Deadline::on(self.clock, self.end))
    }

    /// The cause with which the token fires by itself.
    pub(crate) fn signal_cause(&self) -> Cause {
        if self.fires() {
            self.cause
        } else {
            Cause::DeadlineExceeded
        }
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    /// Whether it is time for the token to fire by itself, as far as can be told here.
    pub(crate) fn is_due(&self) -> bool {
        !self.signal.is_never() && self.clock.read().is_some_and(|now| now >= self.signal)
    }

    /// How long the call has been under way; zero for a token that belongs to none.
    pub(crate) fn elapsed(&self) -> Duration {
        if self.start.is_never() {
            Duration::ZERO
        } else {
            self.now().since(self.start)
        }
    }

    /// Whether anybody would hear of this call's events.
    pub(crate) fn is_heard(&self) -> bool {
        listener::is_heard(self.policy.listener.as_ref())
    }

    /// Tells the listeners; the event is made only if there are any.
    pub(crate) fn tell(&self, kind: EventKind<'_>, elapsed: Duration, worker: Option<WorkerName>) {
        if !self.is_heard() {
            return;
        }
        let clock = self.policy.clock.as_ref().and_then(Kept::get);
        let stamped = clock.and_then(|clock| {
            frame::outside(|| unwind::catch(|| clock.now()))
                .map_err(unwind::dispose)
                .ok()
        });
        let event = Event {
            timestamp: stamped.unwrap_or_else(SystemTime::now),
            call: self.id,
            name: self.name(),
            worker,
            elapsed,
            limit: self.limit,
            kind,
        };
        listener::tell(self.policy.listener.as_ref(), &event);
    }

    pub(crate) fn error(
        &self,
        cause: Cause,
        elapsed: Duration,
        started: bool,
        reason: Option<Reason>,
    ) -> TimeoutError {
        TimeoutError::new(self.name(), cause, self.limit, elapsed, started, reason)
    }

    /// The verdict of a call whose operation never ran.
    pub(crate) fn not_started(&self, cause: Cause, reason: Option<Reason>) -> TimeoutError {
        let elapsed = self.elapsed();
        self.tell(EventKind::NotStarted(cause), elapsed, None);
        self.error(cause, elapsed, false, reason)
    }
}
