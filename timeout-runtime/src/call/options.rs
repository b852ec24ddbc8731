//! The options of one call.

use std::fmt;
use std::time::Duration;

use crate::call::abandoned;
use crate::context::frame::{self, PlainCall};
use crate::terms::{NO_LIMIT, PolicyRef};
use crate::time::{Clock, Deadline, tick};
use crate::token::CancelToken;
use crate::token::node::NodeRef;

/// The options of one call: the policy of its function, and the values for this call.
#[must_use]
pub struct CallOptions {
    pub(crate) policy: PolicyRef,
    pub(crate) limit: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) max_abandoned: Option<usize>,
    pub(crate) upstream: Vec<NodeRef>,
    pub(crate) deadline: Deadline,
    pub(crate) inherit: bool,
}

impl CallOptions {
    #[inline]
    pub(crate) fn new(policy: PolicyRef) -> Self {
        Self {
            policy,
            limit: None,
            grace: Duration::ZERO,
            max_abandoned: None,
            upstream: Vec::new(),
            deadline: Deadline::never(),
            inherit: true,
        }
    }

    /// The limit in milliseconds.
    #[inline]
    pub fn ms(self, ms: u64) -> Self {
        self.limit(Duration::from_millis(ms))
    }

    /// The limit in seconds.
    #[inline]
    pub fn secs(self, secs: u64) -> Self {
        self.limit(Duration::from_secs(secs))
    }

    /// The limit. `Duration::MAX` means no limit.
    #[inline]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit).filter(|limit| *limit != Duration::MAX);
        self
    }

    /// How long after the cancellation a result still counts.
    #[inline]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Does not inherit from the enclosing call.
    #[inline]
    pub fn detached(mut self) -> Self {
        self.inherit = false;
        self
    }

    /// Replaces the limit, if another one is set for this name. Called once, when the call begins.
    #[inline]
    pub(super) fn update_limit(&mut self) {
        if !self.policy.in_force.is_own() {
            self.replace_limit();
        }
    }

    #[cold]
    fn replace_limit(&mut self) {
        let policy = &*self.policy;
        if let Some(limit) = policy.in_force.replacement(policy.name, self.limit) {
            self.limit = Some(limit).filter(|limit| *limit != Duration::MAX);
        }
    }

    /// The limit as in `PlainTerms`, if only time and an enclosing call can end the call.
    #[inline]
    fn plain_limit(&self) -> Option<u64> {
        let limit = self.limit.map_or(NO_LIMIT, tick::nanos);
        let is_plain =
            limit > 0 && self.grace.is_zero() && self.upstream.is_empty() && !abandoned::any();
        is_plain.then_some(limit)
    }

    /// Whether the call inherits nothing.
    #[inline]
    fn is_outermost(&self) -> bool {
        !self.inherit || frame::is_outside()
    }

    /// The limit as in `PlainTerms`, if only the limit can end the call.
    pub(crate) fn only_limit(&self) -> Option<u64> {
        self.plain_limit()
            .filter(|_| self.deadline == Deadline::never() && self.is_outermost())
    }

    /// Starts the call if only time can end it and `clock` is the real clock. An async call may use
    /// a coarse clock reading for its start.
    ///
    /// Takes a reference, because moving the options takes longer than the rest.
    #[inline]
    pub(crate) fn plain(&mut self, clock: Clock) -> Option<PlainCall> {
        self.update_limit();
        let (deadline_clock, bound) = self.deadline.parts();
        let limit = self.plain_limit()?;
        if deadline_clock != Clock::Real || clock.is_virtual() {
            return None;
        }
        if self.is_outermost() && bound.is_never() {
            let may_be_coarse = clock != Clock::Real;
            return Some(PlainCall::new(self.policy.clone(), limit, may_be_coarse));
        }
        frame::bounded_call(&self.policy, limit, bound, self.inherit)
    }

    /// A shared deadline besides the limit. The earlier one holds.
    pub(crate) fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = self.deadline.min(deadline);
        self
    }

    /// Adds an upstream token, which cancels the call.
    pub(crate) fn link(mut self, token: &CancelToken) -> Self {
        self.upstream.push(token.0.clone());
        self
    }

    /// How many abandoned operations of this name prevent a new one from starting.
    pub fn max_abandoned(mut self, most: usize) -> Self {
        self.max_abandoned = Some(most);
        self
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("policy", &*self.policy)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
