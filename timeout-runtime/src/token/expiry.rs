//! [`Expiry`]: when time cancels a token, and with which cause.

use crate::outcome::Cause;
use crate::terms::Terms;
use crate::time::{Clock, Deadline, Tick};

/// When time cancels a token, and with which cause. Nested calls inherit this deadline.
#[derive(Clone, Copy)]
pub(crate) struct Expiry {
    pub(crate) clock: Clock,
    pub(crate) at: Tick,
    cause: Cause,
}

impl Expiry {
    pub(crate) const NEVER: Self = Self {
        clock: Clock::Real,
        at: Tick::NEVER,
        cause: Cause::DeadlineExceeded,
    };

    /// The expiry of a context with this deadline.
    pub(crate) fn of_context(deadline: Deadline) -> Self {
        let (clock, at) = deadline.parts();
        Self {
            // Other threads may read the token, so the clock is chosen here.
            clock: clock.resolved(),
            at,
            cause: Cause::DeadlineExceeded,
        }
    }

    /// The expiry of a call's token. With `cancel = false` the token has the deadline of the
    /// `context` only.
    pub(crate) fn of_call(terms: &Terms, context: Tick) -> Self {
        let (at, cause) = if terms.cancels_at_deadline() {
            (terms.deadline(), terms.cause())
        } else {
            (context, Cause::DeadlineExceeded)
        };
        Self {
            clock: terms.clock(),
            at,
            cause,
        }
    }

    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::on(self.clock, self.at)
    }

    /// The cause, if the deadline has passed as far as this thread can tell.
    pub(super) fn cause_if_due(&self) -> Option<Cause> {
        self.clock
            .has_visibly_reached(self.at)
            .then_some(self.cause)
    }

    pub(super) fn cause(&self) -> Cause {
        self.cause
    }
}
