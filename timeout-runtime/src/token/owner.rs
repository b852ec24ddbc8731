//! [`Owner`]: what a token belongs to. It names the token in errors and bounds it in time.

use std::sync::OnceLock;
use std::time::Duration;

use crate::outcome::{Cause, Reason, TimeoutError};
use crate::terms::{PolicyRef, Terms};
use crate::time::Deadline;

use super::expiry::Expiry;

/// What a token belongs to.
pub(crate) enum Owner {
    /// Nothing, or the call of its parent.
    None,
    /// A context with this deadline.
    Context(Deadline),
    Call(Terms),
    /// A call that has not started when its operation gets the token.
    Later(Box<LaterCall>),
}

/// A call before its start, and its terms once it has started.
pub(crate) struct LaterCall {
    policy: PolicyRef,
    limit: Option<Duration>,
    started: OnceLock<Terms>,
}

impl Owner {
    /// A call that has not started.
    pub(crate) fn later(policy: PolicyRef, limit: Option<Duration>) -> Self {
        Self::Later(Box::new(LaterCall {
            policy,
            limit,
            started: OnceLock::new(),
        }))
    }

    /// The call has started, with these terms.
    pub(super) fn begin(&self, terms: &Terms) {
        if let Self::Later(call) = self {
            let is_first = call.started.set(terms.clone()).is_ok();
            debug_assert!(is_first, "a call starts once");
        }
    }

    /// A context with this deadline.
    pub(crate) fn context(deadline: Deadline) -> Self {
        let (clock, at) = deadline.parts();
        // Other threads may read the token, so the clock is chosen here.
        Self::Context(Deadline::on(clock.resolved(), at))
    }

    /// When time cancels the token.
    pub(super) fn expiry(&self) -> Expiry {
        match self {
            // The token of a later call is cancelled with its parent, the token of the call.
            Self::None | Self::Later(_) => Expiry::NEVER,
            Self::Context(deadline) => Expiry::of_context(*deadline),
            Self::Call(terms) => Expiry::of_call(terms),
        }
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The terms of the call, if it has started.
    pub(super) fn terms(&self) -> Option<&Terms> {
        match self {
            Self::None | Self::Context(_) => None,
            Self::Call(terms) => Some(terms),
            Self::Later(call) => call.started.get(),
        }
    }

    /// The name of the call, or `token`.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::None | Self::Context(_) => "token",
            Self::Call(terms) => terms.name(),
            Self::Later(call) => call.policy.name,
        }
    }

    /// The error of a cancelled token of this call.
    pub(super) fn error(&self, cause: Cause, reason: Option<Reason>) -> TimeoutError {
        if let Some(terms) = self.terms() {
            return terms.error(cause, terms.elapsed(), true, reason);
        }
        let limit = match self {
            Self::Later(call) => call.limit,
            Self::None | Self::Context(_) | Self::Call(_) => None,
        };
        TimeoutError::new(self.name(), cause, limit, Duration::ZERO, true, reason)
    }
}
