//! [`PlainCall`]: a call that runs in place, until something needs its token.

use std::time::Duration;

use crate::outcome::Cause;
use crate::terms::{FullTerms, PlainTerms, Policy, PolicyRef, Terms};
use crate::time::{Clock, Order, Tick, tick};
use crate::token::node::{NodeRef, Watch};
use crate::token::{CancelToken, Owner};

/// A call that runs in place and that only time can end: its own limit, a shared deadline, or the
/// deadline of the enclosing call, which is such a call too.
pub(crate) struct PlainCall {
    terms: PlainTerms,
    /// The deadline that is shared or that of the enclosing call, or `NEVER`.
    bound: Tick,
    /// Whether the call inherits from the call of the frame below.
    is_nested: bool,
    /// Whether the start is the latest possible one, from a coarse clock reading.
    is_start_coarse: bool,
    /// The caller has left. A token that is created from now on is cancelled.
    caller_left: bool,
}

/// From this limit on (in nanoseconds), async calls read their start from the coarse clock.
pub(super) const COARSE_FROM: u64 = 1_000_000_000;

impl PlainCall {
    /// Starts a call that inherits nothing. `may_be_coarse` allows a coarse clock reading for its
    /// start.
    #[inline]
    pub(crate) fn new(policy: PolicyRef, limit: u64, may_be_coarse: bool) -> Self {
        let mut is_start_coarse = false;
        let terms = PlainTerms::new(policy, limit, |policy| {
            // Events have precise times.
            is_start_coarse = may_be_coarse && limit >= COARSE_FROM && !policy.has_listeners();
            if is_start_coarse {
                Tick::now_coarse().plus_nanos(tick::BEHIND)
            } else {
                Tick::now()
            }
        });
        Self {
            terms,
            bound: Tick::NEVER,
            is_nested: false,
            is_start_coarse,
            caller_left: false,
        }
    }

    /// Starts a call that inherits nothing and ends at `bound`, or at its limit. Returns `None` if
    /// it must not start.
    pub(crate) fn until(policy: &PolicyRef, limit: u64, bound: Tick) -> Option<Self> {
        let terms = PlainTerms::new(policy.clone(), limit, |_| Tick::now());
        (terms.start < bound).then_some(Self {
            terms,
            bound,
            is_nested: false,
            is_start_coarse: false,
            caller_left: false,
        })
    }

    /// Starts a call inside this one, which ends at `bound` at the latest. Returns `None` if more
    /// than time can end it, or if it must not start.
    pub(super) fn nested(&self, policy: &PolicyRef, limit: u64, bound: Tick) -> Option<Self> {
        if self.caller_left || !self.policy().cancel || !policy.cancel {
            return None;
        }
        let mut call = Self::until(policy, limit, bound.min(self.deadline()))?;
        call.is_nested = true;
        Some(call)
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.terms.policy
    }

    /// Whether the call inherits from the call of the frame below.
    #[inline]
    pub(crate) fn is_nested(&self) -> bool {
        self.is_nested
    }

    #[inline]
    pub(crate) fn has_listeners(&self) -> bool {
        self.terms.policy.has_listeners()
    }

    /// The earlier one of the own deadline and the inherited or shared one. From a coarse start it
    /// is the latest possible one. That is exact once it has passed, because the limit is longer
    /// than the error of the start.
    #[inline]
    pub(crate) fn deadline(&self) -> Tick {
        self.terms.deadline().min(self.bound)
    }

    /// Makes a coarse start precise. Returns the deadline, and whether it has passed.
    ///
    /// The true start is at most `tick::BEHIND` after the coarse reading, and not after now. The
    /// earlier of these two instants becomes the start. So the deadline is never early, and late by
    /// at most the duration of the first poll.
    pub(crate) fn resolve_deadline(&mut self) -> (Tick, bool) {
        if self.is_start_coarse {
            let now = Tick::now();
            self.resolve_start(now);
            let deadline = self.deadline();
            return (deadline, now >= deadline);
        }
        (self.deadline(), self.has_expired())
    }

    #[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
    pub(super) fn has_coarse_start(&self) -> bool {
        self.is_start_coarse
    }

    fn resolve_start(&mut self, now: Tick) {
        self.is_start_coarse = false;
        self.terms.start = self.terms.start.min(now);
    }

    /// Whether the deadline has passed.
    #[inline]
    pub(crate) fn has_expired(&self) -> bool {
        Clock::Real.has_reached(self.deadline())
    }

    /// Whether the token of the call would be cancelled if it existed.
    pub(super) fn is_stopped(&self) -> bool {
        self.caller_left || self.policy().cancel && self.has_expired()
    }

    /// The caller has left.
    pub(super) fn abandon(&mut self) {
        self.caller_left = true;
    }

    /// Whether the call can be copied.
    #[inline]
    pub(super) fn is_static(&self) -> bool {
        matches!(self.terms.policy, PolicyRef::Static(_))
    }

    /// A copy of the call, if copying needs no reference count.
    #[inline]
    pub(super) fn copy(&self) -> Option<Self> {
        let PlainTerms { policy, id, .. } = &self.terms;
        match policy {
            PolicyRef::Static(policy) => Some(Self {
                terms: PlainTerms {
                    policy: PolicyRef::Static(policy),
                    id: *id,
                    ..self.terms
                },
                ..*self
            }),
            PolicyRef::Shared(_) => None,
        }
    }

    /// The terms of the call, with a precise start.
    pub(crate) fn terms(&mut self) -> Terms {
        if self.is_start_coarse {
            self.resolve_start(Tick::now());
        }
        let (own, deadline) = (self.terms.clone(), self.deadline());
        if self.bound.is_never() {
            return Terms::Plain(own);
        }
        // At equal instants, the inherited or shared deadline is the cause.
        let cause = if self.bound <= own.deadline() {
            Cause::DeadlineExceeded
        } else {
            Cause::TimedOut
        };
        Terms::Full(Box::new(FullTerms {
            id: own.id,
            limit: own.limit(),
            grace: Duration::ZERO,
            clock: Clock::Real,
            order: Order::NONE,
            start: own.start,
            deadline,
            cause,
            end: deadline,
            context_deadline: Tick::NEVER,
            policy: own.policy,
        }))
    }

    /// Creates the token of the call, below that of the enclosing call.
    #[cold]
    pub(super) fn token(&mut self, enclosing: Option<&CancelToken>) -> CancelToken {
        let parents = enclosing.map(|CancelToken(node)| node);
        let parents = parents.map_or(&[][..], std::slice::from_ref);
        let node = NodeRef::new(Owner::Call(self.terms()), Watch::Clocked, parents);
        if self.caller_left {
            node.cancel(Cause::Cancelled, None);
        }
        CancelToken(node)
    }
}
