//! [`Owner`]: the call that a token belongs to, which names it in errors.

use std::sync::OnceLock;
use std::time::Duration;

use crate::outcome::{Cause, Reason, TimeoutError};
use crate::terms::{PolicyRef, Terms};

/// The call that a token belongs to.
pub(crate) enum Owner {
    /// A token without a call, or a token that belongs to the call of its parent.
    None,
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

    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The terms of the call, if it has started.
    pub(super) fn terms(&self) -> Option<&Terms> {
        match self {
            Self::None => None,
            Self::Call(terms) => Some(terms),
            Self::Later(call) => call.started.get(),
        }
    }

    /// The name of the call, or `token`.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::None => "token",
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
            Self::None | Self::Call(_) => None,
        };
        TimeoutError::new(self.name(), cause, limit, Duration::ZERO, true, reason)
    }
}
