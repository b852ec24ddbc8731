//! [`Work`]: until when there is work on a request, and who tells that its time is up, or that its client has left.

use std::task::Context;

use crate::alarm::CallerAlarm;
use crate::context::CallContext;
use crate::deadline::Deadline;
use crate::error::Cause;
use crate::token::{CancelToken, DropGuard};

/// Dropping it before its end cancels all work on the request.
pub(super) struct Work {
    leaving: DropGuard,
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
            leaving: token.drop_guard(),
            token,
            deadline,
            alarm: CallerAlarm::default(),
        };
        (work, context)
    }

    /// Whether its time is up.
    pub(super) fn is_over(&self) -> bool {
        let (clock, at) = self.deadline.parts();
        clock.has_come_to(at)
    }

    /// The same; all of it has been told then, also what the timer has not come to yet.
    pub(super) fn tell_if_over(&self) -> bool {
        let is_over = self.is_over();
        if is_over {
            self.token.0.fire(Cause::DeadlineExceeded, None);
        }
        is_over
    }

    /// Has the task woken when its time is up.
    pub(super) fn wake(&mut self, context: &mut Context<'_>) {
        let (clock, at) = self.deadline.parts();
        self.alarm.set(clock, at, context);
    }

    /// It has come to its end, and cancels nothing.
    pub(super) fn end(work: &mut Option<Self>) {
        if let Some(work) = work.take() {
            drop(work.leaving.disarm());
        }
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }
}
