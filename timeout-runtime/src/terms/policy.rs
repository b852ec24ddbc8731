//! [`Policy`]: what is the same for all calls of one annotated function or one `Timeout`: the name,
//! `cancel`, the listener and the clock of events, and how callers spin. Limits are in
//! `CallOptions`.

use std::fmt;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::event::CallId;
use crate::event::clock::OwnClock;
use crate::event::listener::{self, Own};
use crate::limits::InForce;
use crate::pool::Spin;

/// The settings shared by all calls of one function.
#[derive(Clone)]
pub struct Policy {
    pub(crate) name: &'static str,
    /// Whether the deadline cancels the token.
    pub(crate) cancel: bool,
    pub(crate) listener: Option<Own>,
    pub(crate) clock: Option<OwnClock>,
    /// Adaptive spinning of parked callers.
    pub(crate) spin: Spin,
    /// The limit that replaces the one in the code.
    pub(crate) in_force: InForce,
}

impl Policy {
    /// The policy of a function whose token is cancelled at the deadline.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            cancel: true,
            listener: None,
            clock: None,
            spin: Spin::new(),
            in_force: InForce::new(),
        }
    }

    /// Whether any listener receives the events of a call.
    #[inline]
    pub(crate) fn has_listeners(&self) -> bool {
        listener::has_listeners(self.listener.as_ref())
    }

    /// Returns an id for a call that starts now, if a listener would receive its events.
    ///
    /// Other calls get an id when their first event is emitted or when they are abandoned.
    #[inline]
    pub(crate) fn call_id(&self) -> Option<CallId> {
        self.has_listeners().then(CallId::fresh)
    }

    /// The same policy with `cancel = false`: an operation past its deadline keeps running.
    #[must_use]
    pub const fn keep_running(mut self) -> Self {
        self.cancel = false;
        self
    }
}

// A policy never changes while calls use it, and panics of its listener and clock end there.
impl UnwindSafe for Policy {}
impl RefUnwindSafe for Policy {}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("name", &self.name)
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}

/// A reference to a policy that a call can keep.
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
