//! [`InlineCall`]: a call whose operation is a future that the caller's task polls. The future is
//! neither spawned nor moved to a worker.

use std::fmt;
use std::future::Future;
use std::panic::UnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::context::frame::{self, Frame};
use crate::outcome::TimeoutError;
use crate::time::Clock;
use crate::token::{CallerAlarm, CancelToken, checks};

use super::TokenParam;
use super::convert::IntoReturn;
use super::inline::{decide, start_with_token};
use super::options::CallOptions;
use super::report::Classify;
use super::view::{Caller, Progress, Wait};

/// A call whose operation is polled in place. It is stored beside the future of the operation,
/// inside the future of the caller:
///
/// ```text
/// let mut call = InlineCall::new(options);  // dropped last
/// let op = async move { .. };
/// let op = pin!(op);                        // moved once, before the first poll
/// call.run(op, ..).await                    // dropped first
/// ```
///
/// So nested calls need no wrapper future and no copy. The operation is dropped inside its call:
/// `InlineFuture` is dropped before it and installs the frame of the call, and `InlineCall` is
/// dropped after it and removes the frame.
pub struct InlineCall {
    stage: InlineStage,
    frame: Frame,
    wait: Wait,
    alarm: CallerAlarm,
}

enum InlineStage {
    /// From the entry until the outcome.
    UnderWay,
    /// The call does not start.
    Refused(Box<TimeoutError>),
    /// The wait is over, or the caller has left. The operation is dropped next, inside the frame of
    /// the call.
    Dropping { caller_left: bool },
    /// The operation has ended by itself.
    Over,
}

/// What follows a poll that returned `Pending`.
enum AfterPending {
    /// The token has just been cancelled: poll once more, so that the operation can observe it.
    Poll,
    Wait,
    Over,
}

impl InlineCall {
    /// Starts the call, or stores the error that refuses it.
    #[must_use]
    #[inline]
    pub fn new(mut options: CallOptions) -> Self {
        let clock = Clock::of_task();
        match options.plain(clock) {
            Some(call) => Self::at(InlineStage::UnderWay, Frame::Plain(call)),
            None => Self::linked(options, clock),
        }
    }

    #[cold]
    fn linked(options: CallOptions, clock: Clock) -> Self {
        match start_with_token(options, clock) {
            Ok(frame) => Self::at(InlineStage::UnderWay, frame),
            Err(error) => Self::refused(error),
        }
    }

    #[inline]
    fn at(stage: InlineStage, frame: Frame) -> Self {
        Self {
            stage,
            frame,
            wait: Wait::default(),
            alarm: CallerAlarm::default(),
        }
    }

    fn refused(error: TimeoutError) -> Self {
        Self::at(InlineStage::Refused(Box::new(error)), Frame::Outside)
    }

    /// Starts a call whose future exists already and was given `token`.
    pub(crate) fn with_returned_future(options: CallOptions, token: &CancelToken) -> Self {
        let mut call = Self::new(options);
        let refusal = if let InlineStage::Refused(error) = &call.stage {
            Some((error.cause(), None))
        } else {
            token.0.cancellation()
        };
        if let Some((cause, reason)) = refusal {
            token.0.cancel(cause, None);
            if let InlineStage::UnderWay = call.stage {
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

    /// The argument of the operation: its token or nothing.
    #[inline]
    pub fn param<A: TokenParam>(&mut self) -> A {
        // A refused call has no token. Its operation is never polled, so the default is never read.
        A::create(|| self.frame.token().cloned().unwrap_or_default())
    }

    /// Polls `op` until the outcome.
    #[inline]
    pub(crate) fn run<'a, R, Fut, M>(
        &'a mut self,
        op: Pin<&'a mut Fut>,
        classify: Classify<R>,
        convert: M,
    ) -> InlineFuture<'a, R, Fut, M> {
        InlineFuture {
            call: self,
            op,
            conversion: Some((classify, convert)),
        }
    }

    /// Polls `op` until the outcome.
    #[inline]
    pub(crate) fn poll<R, Fut: Future<Output = R>, T>(
        &mut self,
        op: &mut Pin<&mut Fut>,
        classify: Classify<R>,
        context: &mut Context<'_>,
        convert: impl FnOnce(Result<R, TimeoutError>) -> T,
    ) -> Poll<T> {
        if !matches!(self.stage, InlineStage::UnderWay) {
            return Poll::Ready(convert(Err(self.refusal())));
        }
        loop {
            let (value, panic) = match self.frame.inside(|| op.as_mut().poll(context)) {
                Ok(Poll::Ready(value)) if self.frame.has_polled(&value, classify) => {
                    self.stage = InlineStage::Over;
                    return Poll::Ready(convert(Ok(value)));
                }
                Ok(Poll::Ready(value)) => (Some(value), None),
                Ok(Poll::Pending) if self.is_watched(context) => return Poll::Pending,
                Ok(Poll::Pending) => match self.after_pending(context) {
                    AfterPending::Poll => continue,
                    AfterPending::Wait => return Poll::Pending,
                    AfterPending::Over => return Poll::Ready(convert(Err(self.give_up()))),
                },
                Err(panic) => (None, Some(panic)),
            };
            self.stage = InlineStage::Over;
            let frame = &mut self.frame;
            let ending = decide(Caller::Polling, value, panic, classify, frame);
            return Poll::Ready(convert(ending));
        }
    }

    /// The error that refused the call.
    #[cold]
    fn refusal(&self) -> TimeoutError {
        match &self.stage {
            InlineStage::Refused(error) => (**error).clone(),
            _ => panic!("a finished call was polled again"),
        }
    }

    /// The caller has left. If there is no outcome yet, the operation is dropped next.
    #[inline]
    pub(crate) fn leave(&mut self) {
        if matches!(self.stage, InlineStage::UnderWay) {
            self.frame.abandon();
            self.drop_next(true);
        }
    }

    /// Whether an alarm already wakes the task at the deadline, and nothing has to be checked now.
    #[inline]
    fn is_watched(&mut self, context: &Context<'_>) -> bool {
        matches!(self.frame, Frame::Plain(_))
            && !self.wait.is_ending()
            && self.alarm.watches(context)
    }

    /// The operation is pending. Registers the task first, then checks the clock and the token.
    fn after_pending(&mut self, context: &mut Context<'_>) -> AfterPending {
        if !self.wait.is_ending() {
            checks::at_await(|| self.frame.token().cloned());
        }
        match &mut self.frame {
            // From now on, the enclosing call can be cancelled while this one waits.
            Frame::Plain(call) if call.is_nested() => {
                self.frame.token();
            }
            Frame::Plain(_) if self.wait.is_ending() => return AfterPending::Over,
            Frame::Plain(call) => {
                let (deadline, has_expired) = call.resolve_deadline();
                if has_expired {
                    self.wait.end_now();
                    return AfterPending::Poll;
                }
                self.alarm.set(Clock::Real, deadline, context);
                return AfterPending::Wait;
            }
            Frame::Outside | Frame::Token(_) => {}
        }
        if let Frame::Token(CancelToken(token)) = &self.frame {
            self.alarm.watch(token);
            token.set_caller_waker(context.waker());
        }
        let was_ending = self.wait.is_ending();
        let wait = &mut self.wait;
        let (look, clock) = self.frame.view(Caller::Polling, |view| {
            (view.progress(wait), view.terms.clock())
        });
        if !was_ending && self.wait.is_ending() {
            return AfterPending::Poll;
        }
        match look {
            Progress::Wait(until) => {
                let token = self.frame.known_token();
                if !token.is_some_and(|CancelToken(token)| token.wakes_caller_at(until)) {
                    self.alarm.set(clock, until, context);
                }
                AfterPending::Wait
            }
            Progress::Over | Progress::Withdraw | Progress::Published => AfterPending::Over,
        }
    }

    /// The wait is over without a result.
    #[cold]
    fn give_up(&mut self) -> TimeoutError {
        let error = self.frame.give_up();
        self.drop_next(false);
        error
    }

    /// Installs the frame of the call, in which the operation is dropped next.
    #[cold]
    fn drop_next(&mut self, caller_left: bool) {
        frame::install(&mut self.frame);
        self.stage = InlineStage::Dropping { caller_left };
    }
}

impl Drop for InlineCall {
    #[inline]
    fn drop(&mut self) {
        if let InlineStage::Dropping { caller_left } = self.stage {
            self.dropped(caller_left);
        }
    }
}

impl InlineCall {
    /// The operation was dropped. Removes the frame of the call.
    #[cold]
    fn dropped(&mut self, caller_left: bool) {
        frame::remove(&mut self.frame);
        if caller_left && !self.frame.is_unobserved() {
            self.frame.view(Caller::Polling, |view| {
                view.end_dropped(view.leave_dropped(), None);
            });
        }
    }
}

/// The future of an inline call, created by `InlineCall::run`.
///
/// Cancel safe if the operation is. Dropping it before the outcome cancels the token; the operation
/// is dropped next.
#[must_use = "futures do nothing unless polled"]
pub struct InlineFuture<'a, R, Fut, M> {
    call: &'a mut InlineCall,
    op: Pin<&'a mut Fut>,
    conversion: Option<(Classify<R>, M)>,
}

// The operation is pinned outside; nothing in this struct is.
impl<R, Fut, M> Unpin for InlineFuture<'_, R, Fut, M> {}

// The references point into the caller's own future. A panic of the operation ends the call, which
// is not polled again, so an annotated future is as unwind safe as its body.
impl<R, Fut: UnwindSafe, M: UnwindSafe> UnwindSafe for InlineFuture<'_, R, Fut, M> {}

impl<R, Fut: Future<Output = R>, M: IntoReturn<R>> Future for InlineFuture<'_, R, Fut, M> {
    type Output = M::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        let Self {
            call,
            op,
            conversion,
        } = self.get_mut();
        let Some((classify, _)) = *conversion else {
            panic!("a finished call was polled again");
        };
        // Converting inside `poll` avoids one move of the result. That move costs half of a ready
        // call.
        call.poll(op, classify, context, |ending| match conversion.take() {
            Some((_, convert)) => convert.into_return(ending),
            None => unreachable!("it was `Some` before the poll"),
        })
    }
}

impl<R, Fut, M> Drop for InlineFuture<'_, R, Fut, M> {
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

impl<R, Fut, M> fmt::Debug for InlineFuture<'_, R, Fut, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineFuture").finish_non_exhaustive()
    }
}
