//! [`Work`]: cancels the operations of one request at its deadline, when its client disconnects, or
//! when its server cancels it.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;

use crate::context::CallContext;
use crate::outcome::Cause;
use crate::time::Deadline;
use crate::token::{CallerAlarm, CancelToken, DropGuard, Waiting};

use super::refusal::Refusal;

/// The operations of one request. Dropping it before its [`end`](Self::end) cancels them.
pub(super) struct Work {
    on_disconnect: Option<DropGuard>,
    token: CancelToken,
    deadline: Deadline,
    alarm: CallerAlarm,
    /// Waits for the token that cancels all requests.
    upstream: Option<Waiting<CancelToken>>,
}

impl Work {
    /// Creates the `Work` of a request, and the context in which its operations run.
    pub(super) fn new(deadline: Deadline, upstream: Option<&CancelToken>) -> (Self, CallContext) {
        let token = upstream.map_or_else(CancelToken::new, CancelToken::child);
        let context = CallContext::current()
            .with_deadline(deadline)
            .with_token(&token);
        let work = Self {
            on_disconnect: Some(token.drop_guard()),
            token,
            deadline,
            alarm: CallerAlarm::default(),
            upstream: upstream.cloned().map(Waiting::new),
        };
        (work, context)
    }

    /// Returns why the request is over, if it is. Its operations are cancelled then.
    ///
    /// Does not wait for the timer, which can be late.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let (clock, at) = self.deadline.parts();
        if clock.has_reached(at) {
            self.token.0.cancel(Cause::DeadlineExceeded, None);
            return Some(Refusal::Expired);
        }
        let upstream = self.upstream.as_ref()?.token();
        let (cause, reason) = upstream.0.cancellation()?;
        // The thread that cancels the upstream token may not have reached this one yet.
        self.token.0.cancel(cause, reason.as_ref());
        Some(Refusal::Cancelled)
    }

    /// Wakes the task when the request is over.
    pub(super) fn wake(&mut self, context: &mut Context<'_>) {
        let (clock, at) = self.deadline.parts();
        self.alarm.set(clock, at, context);
        if let Some(upstream) = &mut self.upstream {
            if Pin::new(upstream).poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
        }
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
