//! [`Expiry`]: the deadline that cancels a token, and the cause that it gives.
//!
//! With `cancel = false` it is the deadline of the enclosing context, not that of the call.

use crate::outcome::Cause;
use crate::terms::Terms;
use crate::time::{Clock, Deadline, Tick};

/// When time cancels a token, and with which cause. Nested calls inherit this deadline.
#[derive(Clone, Copy)]
pub(crate) struct Expiry {
    pub(crate) clock: Clock,
    pub(crate) at: Tick,
    pub(crate) cause: Cause,
}

impl Expiry {
    pub(super) const NEVER: Self = Self {
        clock: Clock::Real,
        at: Tick::NEVER,
        cause: Cause::DeadlineExceeded,
    };

    pub(super) fn of_context(deadline: Deadline) -> Self {
        let (clock, at) = deadline.parts();
        let cause = Cause::DeadlineExceeded;
        Self { clock, at, cause }
    }

    pub(super) fn of_call(terms: &Terms) -> Self {
        let (at, cause) = if terms.cancels_at_deadline() {
            (terms.deadline(), terms.cause())
        } else {
            (terms.context_deadline(), Cause::DeadlineExceeded)
        };
        let clock = terms.clock();
        Self { clock, at, cause }
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
}
