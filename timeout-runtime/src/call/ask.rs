//! What is asked of a call: the policy of its function, and what this one call adds.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::deadline::Deadline;
use crate::event::clock::TimestampClock;
use crate::event::listener::Own;
use crate::token::node::NodeRef;

/// What all calls of one function have in common.
#[derive(Clone)]
pub struct Policy {
    pub(crate) name: &'static str,
    /// Whether the deadline fires the token.
    pub(crate) cancel: bool,
    pub(crate) listener: Option<Own>,
    pub(crate) clock: Option<Arc<dyn TimestampClock>>,
}

impl Policy {
    /// The policy of a function that is stopped at its deadline.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            cancel: true,
            listener: None,
            clock: None,
        }
    }

    /// The same for a function that runs on, abandoned.
    #[must_use]
    pub const fn keep_running(mut self) -> Self {
        self.cancel = false;
        self
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("name", &self.name)
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}

/// A policy for as long as a call needs it.
#[derive(Clone)]
pub(crate) enum PolicyRef {
    Static(&'static Policy),
    Shared(Arc<Policy>),
}

impl Deref for PolicyRef {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        match self {
            Self::Static(policy) => policy,
            Self::Shared(policy) => policy,
        }
    }
}

/// What is asked of one call.
#[must_use]
pub struct Ask {
    pub(crate) policy: PolicyRef,
    pub(crate) limit: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) max_abandoned: Option<usize>,
    pub(crate) upstream: Vec<NodeRef>,
    pub(crate) deadline: Deadline,
    pub(crate) inherit: bool,
}

impl Ask {
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
    pub fn ms(self, ms: u64) -> Self {
        self.limit(Duration::from_millis(ms))
    }

    /// The limit in seconds.
    pub fn secs(self, secs: u64) -> Self {
        self.limit(Duration::from_secs(secs))
    }

    /// The limit.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// How long past the signal an answer is still taken.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How many abandoned operations of this name are too many to start another.
    pub fn max_abandoned(mut self, most: usize) -> Self {
        self.max_abandoned = Some(most);
        self
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("policy", &*self.policy)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
