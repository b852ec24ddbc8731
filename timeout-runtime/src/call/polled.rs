//! Operations that are polled where their caller is; [`InlineCall`] lives beside the pinned operation.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::alarm::CallerAlarm;
use crate::deadline::Clock;
use crate::error::TimeoutError;
use crate::frame::{self, Frame};
use crate::token::CancelToken;

use super::TokenParam;
use super::ask::Ask;
use super::inline::{begin_linked, judged};
use super::report::Classify;
use super::rim::Finish;
use super::view::{Caller, Look, Wait};

/// A call whose operation is polled in place. It lives beside the operation's future, inside the caller's own:
///
/// ```text
/// let mut call = InlineCall::new(ask);      // dropped last
/// let op = async move { .. };
/// let op = pin!(op);                        // moved once, before the first poll
/// call.run(op, ..).await                    // dropped first
/// ```
///
/// So there is no type and no copy between the futures of two nested calls, and the operation is dropped inside its call: whoever
/// is dropped before it puts the call's frame in place, and the call, which is dropped after it, takes the frame out.
pub struct InlineCall {
    stage: Stage,
    frame: Frame,
    wait: Wait,
    alarm: CallerAlarm,
}

enum Stage {
    /// From the entry until the verdict.
    UnderWay,
    /// The call does not start.
    Refused(Box<TimeoutError>),
    /// The wait is over, or the caller has gone; the operation is dropped next, inside the call's frame.
    Dropping { gone: bool },
    /// The operation has ended by itself.
    Over,
}

/// What comes after a poll that was pending.
enum Next {
    /// The signal has just been given: one more poll, for the operation to see it.
    Poll,
    Wait,
    Over,
}

impl InlineCall {
    /// The call starts now, unless it is refused.
    #[must_use]
    #[inline]
    pub fn new(ask: Ask) -> Self {
        match ask.plain(Clock::EXECUTOR) {
            Ok(call) => Self::at(Stage::UnderWay, Frame::Plain(call)),
            Err(ask) => Self::linked(ask),
        }
    }

    #[cold]
    fn linked(ask: Ask) -> Self {
        match begin_linked(ask, Clock::EXECUTOR) {
            Ok(frame) => Self::at(Stage::UnderWay, frame),
            Err(error) => Self::refused(error),
        }
    }

    #[inline]
    fn at(stage: Stage, frame: Frame) -> Self {
        Self {
            stage,
            frame,
            wait: Wait::default(),
            alarm: CallerAlarm::default(),
        }
    }

    fn refused(error: TimeoutError) -> Self {
        Self::at(Stage::Refused(Box::new(error)), Frame::Outside)
    }

    /// The call starts now, with an operation that was made before with this token.
    pub(crate) fn of_made(ask: Ask, token: &CancelToken) -> Self {
        let mut call = Self::new(ask);
        let refusal = if let Stage::Refused(error) = &call.stage {
            Some((error.cause(), None))
        } else {
            token.0.cancellation()
        };
        if let Some((cause, reason)) = refusal {
            token.0.cancel(cause, None);
            if let Stage::UnderWay = call.stage {
                let error = call.frame.view(Caller::Polling, |view| {
                    view.terms.not_started(cause, reason)
                });
                return Self::refused(error);
            }
        } else {
            if let Some(own) = call.frame.token() {
                token.0.begin(&own.0);
            }
            call.frame = Frame::Token(token.clone());
        }
        call
    }

    /// What the operation takes: its token, or nothing.
    #[inline]
    pub fn param<A: TokenParam>(&mut self) -> A {
        // Of a call that is refused nobody will read it: the operation is not polled.
        A::of(|| self.frame.token().cloned().unwrap_or_default())
    }

    /// Polls `op` until the verdict.
    #[inline]
    pub(crate) fn run<'a, R, Fut, M>(
        &'a mut self,
        op: Pin<&'a mut Fut>,
        classify: Classify<R>,
        finish: M,
    ) -> Run<'a, R, Fut, M> {
        Run {
            call: self,
            op,
            rim: Some((classify, finish)),
        }
    }

    /// Polls `op` until the verdict.
    #[inline]
    pub(crate) fn poll<R, Fut: Future<Output = R>, T>(
        &mut self,
        op: &mut Pin<&mut Fut>,
        classify: Classify<R>,
        context: &mut Context<'_>,
        finish: impl FnOnce(Result<R, TimeoutError>) -> T,
    ) -> Poll<T> {
        if !matches!(self.stage, Stage::UnderWay) {
            return Poll::Ready(finish(Err(self.refusal())));
        }
        loop {
            let (value, panic) = match self.frame.inside(|| op.as_mut().poll(context)) {
                Ok(Poll::Ready(value)) if self.frame.passes() => {
                    self.stage = Stage::Over;
                    return Poll::Ready(finish(Ok(value)));
                }
                Ok(Poll::Ready(value)) => (Some(value), None),
                Ok(Poll::Pending) if self.is_watched(context) => return Poll::Pending,
                Ok(Poll::Pending) => match self.next(context) {
                    Next::Poll => continue,
                    Next::Wait => return Poll::Pending,
                    Next::Over => return Poll::Ready(finish(Err(self.give_up()))),
                },
                Err(panic) => (None, Some(panic)),
            };
            self.stage = Stage::Over;
            let frame = &mut self.frame;
            let ending = judged(Caller::Polling, value, panic, classify, frame);
            return Poll::Ready(finish(ending));
        }
    }

    /// Why the call has not started.
    #[cold]
    fn refusal(&self) -> TimeoutError {
        match &self.stage {
            Stage::Refused(error) => (**error).clone(),
            _ => panic!("a finished call was polled again"),
        }
    }

    /// The caller has gone. If there is no verdict yet, the operation is dropped next.
    #[inline]
    pub(crate) fn leave(&mut self) {
        if matches!(self.stage, Stage::UnderWay) {
            self.frame.abandon();
            self.drop_next(true);
        }
    }

    /// Whether the task will be woken when there is something to look at, and there is nothing now.
    #[inline]
    fn is_watched(&mut self, context: &Context<'_>) -> bool {
        matches!(self.frame, Frame::Plain(_))
            && !self.wait.is_ending()
            && self.alarm.watches(context)
    }

    /// The operation is pending: looks at the clock and the token, with the task registered first.
    fn next(&mut self, context: &mut Context<'_>) -> Next {
        if let Frame::Plain(call) = &mut self.frame {
            if call.is_over() {
                return if self.wait.end_now() {
                    Next::Poll
                } else {
                    Next::Over
                };
            }
            let deadline = call.terms().deadline();
            self.alarm.set(Clock::Real, deadline, context);
            return Next::Wait;
        }
        if let Frame::Token(CancelToken(token)) = &self.frame {
            token.ensure_timer();
            token.set_caller_waker(context.waker());
        }
        let was_ending = self.wait.is_ending();
        let wait = &mut self.wait;
        let (look, clock) = self.frame.view(Caller::Polling, |view| {
            (view.look(wait), view.terms.clock())
        });
        if !was_ending && self.wait.is_ending() {
            return Next::Poll;
        }
        match look {
            Look::Wait(until) => {
                self.alarm.set(clock, until, context);
                Next::Wait
            }
            Look::Over | Look::Withdraw | Look::Answered => Next::Over,
        }
    }

    /// The wait is over without an answer.
    #[cold]
    fn give_up(&mut self) -> TimeoutError {
        let error = self.frame.give_up();
        self.drop_next(false);
        error
    }

    /// The operation is dropped next, inside its call.
    #[cold]
    fn drop_next(&mut self, gone: bool) {
        frame::push(&mut self.frame);
        self.stage = Stage::Dropping { gone };
    }
}

impl Drop for InlineCall {
    #[inline]
    fn drop(&mut self) {
        if let Stage::Dropping { gone } = self.stage {
            self.dropped(gone);
        }
    }
}

impl InlineCall {
    /// The operation was dropped.
    #[cold]
    fn dropped(&mut self, gone: bool) {
        frame::pop(&mut self.frame);
        if gone && !self.frame.is_unnoticed() {
            self.frame.view(Caller::Polling, |view| {
                view.dropped(view.leave_dropped(), None);
            });
        }
    }
}

/// The way of an inline call to its verdict; made by `InlineCall::run`.
///
/// Cancel safe if the operation is: dropping it before the verdict fires the token, and the operation is dropped next.
#[must_use = "futures do nothing unless polled"]
pub struct Run<'a, R, Fut, M> {
    call: &'a mut InlineCall,
    op: Pin<&'a mut Fut>,
    rim: Option<(Classify<R>, M)>,
}

// The operation is pinned where it lives, nothing in here is.
impl<R, Fut, M> Unpin for Run<'_, R, Fut, M> {}

impl<R, Fut: Future<Output = R>, M: Finish<R>> Future for Run<'_, R, Fut, M> {
    type Output = M::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        let Self { call, op, rim } = self.get_mut();
        let Some((classify, _)) = *rim else {
            panic!("a finished call was polled again");
        };
        // What is made of the ending is made in there: an answer that moves once less is half as much again as the rest of a ready call.
        call.poll(op, classify, context, |ending| match rim.take() {
            Some((_, finish)) => finish.finish(ending),
            None => unreachable!("it was there before the poll"),
        })
    }
}

impl<R, Fut, M> Drop for Run<'_, R, Fut, M> {
    #[inline]
    fn drop(&mut self) {
        self.call.leave();
    }
}

impl fmt::Debug for InlineCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineCall").finish_non_exhaustive()
    }
}

impl<R, Fut, M> fmt::Debug for Run<'_, R, Fut, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}
