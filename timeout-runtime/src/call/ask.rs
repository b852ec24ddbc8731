//! What is asked of a call: the policy of its function, and what this one call adds.

use std::fmt;
use std::time::Duration;

use crate::deadline::Deadline;
use crate::policy::PolicyRef;
use crate::token::node::NodeRef;

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

    /// The limit; the longest duration means none.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit).filter(|limit| *limit != Duration::MAX);
        self
    }

    /// How long past the signal an answer is still taken.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Takes no part in the call around this one.
    pub fn detached(mut self) -> Self {
        self.inherit = false;
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
