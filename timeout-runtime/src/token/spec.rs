//! What a token is made of: which call it speaks of, when it fires by itself, and who sees to that.

use std::task::Waker;
use std::time::{Duration, Instant};

use crate::deadline::{Clock, Deadline};
use crate::error::Cause;

/// Which call a token speaks of.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) name: &'static str,
    pub(crate) limit: Option<Duration>,
    pub(crate) start: Option<Instant>,
    pub(crate) clock: Clock,
}

impl Origin {
    /// A token that belongs to no call.
    pub(crate) const NONE: Self = Self {
        name: "token",
        limit: None,
        start: None,
        clock: Clock::Real,
    };

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.map_or(Duration::ZERO, |start| {
            self.clock.now().saturating_duration_since(start)
        })
    }
}

/// Who looks out for a token's deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Somebody fires the token when the time has come.
    Watched,
    /// Nobody: readers look at the clock.
    Clocked,
}

/// What a new node is made of, besides its parents and its cargo.
pub(crate) struct Spec {
    pub(crate) origin: Origin,
    pub(crate) deadline: Deadline,
    /// The cause with which the deadline fires.
    pub(crate) cause: Cause,
    pub(crate) watch: Watch,
    /// Whether this is the token of a call: causes are translated where they enter one.
    pub(crate) is_call: bool,
    pub(crate) owner: Option<Waker>,
}

impl Spec {
    /// A token without deadline.
    pub(crate) fn plain(origin: Origin) -> Self {
        Self {
            origin,
            deadline: Deadline::never(),
            cause: Cause::DeadlineExceeded,
            watch: Watch::Watched,
            is_call: false,
            owner: None,
        }
    }
}
