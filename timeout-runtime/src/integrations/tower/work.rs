//! [`Work`]: cancels the operations of one request at its deadline, or when its client disconnects.

use std::task::Context;

use crate::context::CallContext;
use crate::outcome::Cause;
use crate::time::Deadline;
use crate::token::CallerAlarm;
use crate::token::{CancelToken, DropGuard};

/// The operations of one request. Dropping it before its [`end`](Self::end) cancels them.
pub(super) struct Work {
    on_disconnect: Option<DropGuard>,
    token: CancelToken,
    deadline: Deadline,
    alarm: CallerAlarm,
}

impl Work {
    /// Creates the `Work` of a request, and the context in which its operations run.
    pub(super) fn new(deadline: Deadline) -> (Self, CallContext) {
        let token = CancelToken::new();
        let context = CallContext::current()
            .with_deadline(deadline)
            .with_token(&token);
        let work = Self {
            on_disconnect: Some(token.drop_guard()),
            token,
            deadline,
            alarm: CallerAlarm::default(),
        };
        (work, context)
    }

    /// Returns whether the deadline has passed, and cancels the operations if so.
    ///
    /// Does not wait for the timer, which can be late.
    pub(super) fn cancel_if_expired(&self) -> bool {
        let (clock, at) = self.deadline.parts();
        let is_over = clock.has_reached(at);
        if is_over {
            self.token.0.cancel(Cause::DeadlineExceeded, None);
        }
        is_over
    }

    /// Wakes the task at the deadline.
    pub(super) fn wake(&mut self, context: &mut Context<'_>) {
        let (clock, at) = self.deadline.parts();
        self.alarm.set(clock, at, context);
    }

    /// Makes dropping cancel nothing, because the client has the whole response. The deadline
    /// stays.
    pub(super) fn disarm(&mut self) {
        self.on_disconnect.take().map(DropGuard::disarm);
    }

    /// Ends the response, so that nothing is cancelled any more.
    pub(super) fn end(work: &mut Option<Self>) {
        if let Some(mut work) = work.take() {
            work.disarm();
        }
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }
}
