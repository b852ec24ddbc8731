//! [`Work`]: until when there is work on a request, and who tells that its time is up, or that its client has left.

use std::task::Context;

use crate::alarm::CallerAlarm;
use crate::context::CallContext;
use crate::deadline::Deadline;
use crate::error::Cause;
use crate::token::{CancelToken, DropGuard};

/// Dropping it before its end cancels all work on the request.
pub(super) struct Work {
    leaving: Option<DropGuard>,
    token: CancelToken,
    deadline: Deadline,
    alarm: CallerAlarm,
}

impl Work {
    /// The work on a request, and the context in which it is done.
    pub(super) fn new(deadline: Deadline) -> (Self, CallContext) {
        let token = CancelToken::new();
        let context = CallContext::current()
            .with_deadline(deadline)
            .with_token(&token);
        let work = Self {
            leaving: Some(token.drop_guard()),
            token,
            deadline,
            alarm: CallerAlarm::default(),
        };
        (work, context)
    }

    /// Whether its time is up. All of it has been told then, also what the timer has not come to yet.
    pub(super) fn tell_if_over(&self) -> bool {
        let (clock, at) = self.deadline.parts();
        let is_over = clock.has_reached(at);
        if is_over {
            self.token.0.cancel(Cause::DeadlineExceeded, None);
        }
        is_over
    }

    /// Has the task woken when its time is up.
    pub(super) fn wake(&mut self, context: &mut Context<'_>) {
        let (clock, at) = self.deadline.parts();
        self.alarm.set(clock, at, context);
    }

    /// The client has what it has asked for: to drop this cancels nothing any more. The deadline stays.
    pub(super) fn let_go(&mut self) {
        self.leaving.take().map(DropGuard::disarm);
    }

    /// It has come to its end.
    pub(super) fn end(work: &mut Option<Self>) {
        if let Some(mut work) = work.take() {
            work.let_go();
        }
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }
}
