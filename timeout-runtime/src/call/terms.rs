//! The terms of one call, settled at its entry.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::context::{self, Frame};
use crate::deadline::{Clock, Deadline};
use crate::error::{Cause, Reason, TimeoutError};
use crate::event::{CallId, Event, EventKind, WorkerName, listener};
use crate::token::node::NodeRef;
use crate::token::spec::Origin;
use crate::{unwind, workers};

use super::ask::{Ask, PolicyRef};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// What holds for one call from its entry to its end.
pub(crate) struct Terms {
    pub(crate) policy: PolicyRef,
    pub(crate) id: CallId,
    limit: Option<Duration>,
    start: Instant,
    /// The nearest of the call's own limit and what it inherits or shares, on the call's clock.
    pub(crate) deadline: Deadline,
    /// What passing it means.
    pub(crate) cause: Cause,
    /// When the caller is gone at the latest: the deadline and the grace, within the end of the call around this one.
    pub(crate) end: Deadline,
    pub(crate) grace: Duration,
    /// Whether the deadline fires the token.
    pub(crate) fires: bool,
}

/// A call about to start.
pub(crate) struct Opening {
    pub(crate) terms: Terms,
    pub(crate) frame: Frame,
    pub(crate) parents: Vec<NodeRef>,
}

/// Settles the terms of a call that starts now. It does not start if it has ended already, or if too many abandoned operations of
/// its name are still running.
pub(crate) fn open(ask: Ask, clock: Clock) -> Result<Opening, TimeoutError> {
    let Ask {
        policy,
        limit,
        grace,
        max_abandoned,
        upstream: mut parents,
        deadline: shared,
        inherit,
    } = ask;
    let start = clock.now();
    let mut outer = (Deadline::never(), Deadline::never());
    if inherit {
        outer = context::inherited();
        parents.extend(context::current_token().map(|token| token.0));
    }
    let inherited = parents
        .iter()
        .fold(outer.0, |nearest, parent| nearest.min(parent.deadline()))
        .on_clock(clock);
    let own = Deadline::on(clock, limit.and_then(|limit| start.checked_add(limit)));
    // At equal instants the deadline that was there first is the cause.
    let nearest = |bound: Deadline, own: Deadline| match (bound.instant(), own.instant()) {
        (Some(bound_at), Some(own_at)) if bound_at <= own_at => (bound, Cause::DeadlineExceeded),
        (Some(_), None) => (bound, Cause::DeadlineExceeded),
        _ => (own, Cause::TimedOut),
    };
    let (deadline, cause) = nearest(inherited.min(shared.on_clock(clock)), own);
    let cancel = policy.cancel;
    let (token_deadline, token_cause) = if cancel {
        (deadline, cause)
    } else {
        (inherited, Cause::DeadlineExceeded)
    };
    let terms = Terms {
        id: CallId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
        limit,
        start,
        deadline,
        cause,
        // Grace follows the signal; a call that gives none has none.
        end: if cancel {
            deadline.plus(grace).min(outer.1.on_clock(clock))
        } else {
            deadline
        },
        grace,
        fires: cancel,
        policy,
    };
    let refusal = if let Some((cause, reason)) = parents.iter().find_map(|parent| parent.signal()) {
        Some((cause.entering(), reason))
    } else if deadline.passed_at(start) {
        Some((cause, None))
    } else if workers::abandoned::too_many(terms.policy.name, max_abandoned) {
        Some((Cause::NoWorker, None))
    } else {
        None
    };
    if let Some((cause, reason)) = refusal {
        return Err(terms.not_started(cause, reason));
    }
    let frame = Frame {
        deadline: token_deadline,
        cause: token_cause,
        end: terms.end,
        origin: Origin {
            name: terms.policy.name,
            limit,
            start: Some(start),
            clock,
        },
        token: None,
    };
    Ok(Opening {
        terms,
        frame,
        parents,
    })
}

impl Terms {
    pub(crate) fn clock(&self) -> Clock {
        self.deadline.clock()
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock().now()
    }

    pub(crate) fn elapsed_at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start)
    }

    /// Whether anybody would hear of this call's events.
    pub(crate) fn is_heard(&self) -> bool {
        listener::is_heard(self.policy.listener.as_ref())
    }

    /// Tells the listeners; the event is made only if there are any.
    pub(crate) fn tell(&self, kind: EventKind<'_>, elapsed: Duration, worker: Option<WorkerName>) {
        let own = self.policy.listener.as_ref();
        if !self.is_heard() {
            return;
        }
        let stamped = self.policy.clock.as_ref().and_then(|clock| {
            context::outside(|| unwind::catch(|| clock.now()))
                .map_err(unwind::dispose)
                .ok()
        });
        listener::tell(
            own,
            &Event {
                timestamp: stamped.unwrap_or_else(SystemTime::now),
                call: self.id,
                name: self.policy.name,
                worker,
                elapsed,
                limit: self.limit,
                kind,
            },
        );
    }

    pub(crate) fn error(
        &self,
        cause: Cause,
        elapsed: Duration,
        started: bool,
        reason: Option<Reason>,
    ) -> TimeoutError {
        TimeoutError::new(
            self.policy.name,
            cause,
            self.limit,
            elapsed,
            started,
            reason,
        )
    }

    /// The verdict of a call whose operation never ran.
    pub(crate) fn not_started(&self, cause: Cause, reason: Option<Reason>) -> TimeoutError {
        let elapsed = self.elapsed_at(self.now());
        self.tell(EventKind::NotStarted(cause), elapsed, None);
        self.error(cause, elapsed, false, reason)
    }
}
