//! [`Policy`]: what all calls of one function have in common.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::event::clock::OwnClock;
use crate::event::listener::{self, Own};
use crate::workers::Spin;

/// What all calls of one function have in common.
#[derive(Clone)]
pub struct Policy {
    pub(crate) name: &'static str,
    /// Whether the deadline fires the token.
    pub(crate) cancel: bool,
    pub(crate) listener: Option<Own>,
    pub(crate) clock: Option<OwnClock>,
    /// Whether it has been worth it for parked callers to spin first.
    pub(crate) spin: Spin,
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
            spin: Spin::new(),
        }
    }

    /// Whether anybody would hear of a call's events.
    #[inline]
    pub(crate) fn has_listeners(&self) -> bool {
        listener::has_listeners(self.listener.as_ref())
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
