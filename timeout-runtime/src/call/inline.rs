//! Operations where their caller is: run on its thread, or polled in place.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use crate::alarm::CallerAlarm;
use crate::deadline::Clock;
use crate::error::TimeoutError;
use crate::frame::{self, Frame};
use crate::terms::Terms;
use crate::token::CancelToken;
use crate::token::node::{Node, Watch};
use crate::unwind::{self, Payload};

use super::TokenParam;
use super::ask::Ask;
use super::open::{Opening, open};
use super::rim::Finish;
use super::sides::{Classify, Found, Look, Sides, State, Wait};

/// The frame of a call that has something to hear, if it starts.
#[cold]
fn begin_linked(ask: Ask, clock: Clock) -> Result<Frame, TimeoutError> {
    let Opening { terms, parents } = open(ask, clock.settled())?;
    let node = Node::new(terms, Watch::Clocked, &parents, ());
    Ok(Frame::Token(CancelToken(node)))
}

impl Frame {
    /// The call as its two sides see it, of which the caller is both.
    fn sides<T>(&mut self, look: impl FnOnce(Sides<'_>) -> T) -> T {
        let state = State::started();
        let late = Mutex::new(None);
        let (terms, token) = match self {
            Self::Outside => (&Terms::None, None),
            Self::Plain(call) => (&Terms::Plain(call.terms().clone()), None),
            Self::Token(CancelToken(token)) => (token.terms(), Some(&***token)),
        };
        look(Sides {
            terms,
            state: &state,
            late: &late,
            token,
        })
    }

    /// Runs a piece of the operation inside its call. `Err` is its panic.
    #[inline]
    fn inside<T>(&mut self, piece: impl FnOnce() -> T) -> Result<T, Payload> {
        let _inside = frame::enter(self);
        catch_unwind(AssertUnwindSafe(piece))
    }

    /// As `inside`, compiled once and not for each piece. What it costs would show in each poll.
    fn panic_inside(&mut self, piece: &mut dyn FnMut()) -> Option<Payload> {
        let _inside = frame::enter(self);
        unwind::panic_of(piece)
    }

    /// Whether there is nothing to be done about what the operation has ended with.
    #[inline]
    fn passes(&self) -> bool {
        matches!(self, Self::Plain(call) if call.passes())
    }

    /// Whether nobody has the token, and nobody hears of the ending.
    fn is_unnoticed(&self) -> bool {
        matches!(self, Self::Plain(call) if !call.is_heard())
    }

    /// The operation has ended where its caller is, with a value or by `panic`: the verdict. A panic goes on.
    #[cold]
    fn judge(&mut self, value: &mut dyn Value, panic: Option<Payload>) -> Result<(), TimeoutError> {
        let panic = self.sides(|sides| {
            let mut found = Found::nothing(sides.terms);
            let panic = panic.or_else(|| unwind::panic_of(&mut || value.assess(&mut found)));
            let report = sides.report(panic.as_ref(), found);
            if sides.stands(&report) && sides.answer() {
                sides.answered(report);
                return Ok(panic);
            }
            value.clear();
            unwind::dispose(panic);
            sides.stop(report);
            Err(sides.unanswered(sides.leave(), false))
        })?;
        match panic {
            Some(panic) => {
                // It is not to be dropped by the panic, should that be one of asking what it means.
                value.clear();
                resume_unwind(panic)
            }
            None => Ok(()),
        }
    }

    /// The operation was dropped where its caller is, since the wait for it is over: the verdict.
    fn give_up(&mut self) -> TimeoutError {
        self.sides(|sides| sides.unanswered(sides.leave_dropped(), false))
    }
}

/// Runs `op` on the calling thread.
pub(crate) fn sync_inline<R, A, F>(
    ask: Ask,
    classify: Classify<R>,
    op: F,
) -> Result<R, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R,
{
    let mut frame = match ask.plain(Clock::Real) {
        Ok(call) => Frame::Plain(call),
        Err(ask) => begin_linked(ask, Clock::Real)?,
    };
    let param = A::of(|| frame.token().cloned().unwrap_or_default());
    let mut op = Some((op, param));
    let mut value = None;
    let panic = frame.panic_inside(&mut || {
        if let Some((op, param)) = op.take() {
            value = Some(op(param));
        }
    });
    match value {
        Some(value) if frame.passes() => Ok(value),
        value => judged(value, panic, classify, &mut frame),
    }
}

/// What an operation has given where its caller is, whatever its type.
trait Value {
    /// Notes that the operation has ended with it, and what it means.
    fn assess(&self, found: &mut Found<'_>);

    /// Drops the value.
    fn clear(&mut self);
}

struct Given<R>(Option<R>, Classify<R>);

impl<R> Value for Given<R> {
    fn assess(&self, found: &mut Found<'_>) {
        if let Self(Some(value), classify) = self {
            found.ended();
            found.means(frame::outside(|| classify(value)));
        }
    }

    fn clear(&mut self) {
        unwind::dispose(self.0.take());
    }
}

/// The value, if the verdict is that it counts.
#[cold]
fn judged<R>(
    value: Option<R>,
    panic: Option<Payload>,
    classify: Classify<R>,
    frame: &mut Frame,
) -> Result<R, TimeoutError> {
    let mut given = Given(value, classify);
    frame.judge(&mut given, panic)?;
    match given.0 {
        Some(value) => Ok(value),
        None => unreachable!("an operation without a value has panicked"),
    }
}

/// A call whose operation is polled in place. It lives beside the operation's future, inside the caller's own:
///
/// ```text
/// let mut call = InlineCall::new(ask);      // dropped last
/// let op = pin!(async move { .. });         // never moved, not even once
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
    /// The wait is over, or the caller has gone; the operation is dropped next, inside the call's frame, unless that could not be pushed.
    Dropping { gone: bool, pushed: bool },
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
            token.0.signal()
        };
        if let Some((cause, reason)) = refusal {
            token.0.fire(cause, None);
            if let Stage::UnderWay = call.stage {
                let error = call
                    .frame
                    .sides(|sides| sides.terms.not_started(cause, reason));
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
                Ok(Poll::Pending) => match self.next(context) {
                    Next::Poll => continue,
                    Next::Wait => return Poll::Pending,
                    Next::Over => return Poll::Ready(finish(Err(self.give_up()))),
                },
                Err(panic) => (None, Some(panic)),
            };
            self.stage = Stage::Over;
            return Poll::Ready(finish(judged(value, panic, classify, &mut self.frame)));
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

    /// The operation is pending: looks at the clock and the token, with the task registered first.
    fn next(&mut self, context: &mut Context<'_>) -> Next {
        if let Frame::Plain(call) = &mut self.frame {
            if !self.wait.is_signalled() && self.alarm.watches(context) {
                return Next::Wait;
            }
            if call.is_over() {
                return if self.wait.signal() {
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
            token.attend();
            token.set_owner(context.waker());
        }
        let was_signalled = self.wait.is_signalled();
        let wait = &mut self.wait;
        let (look, clock) = self
            .frame
            .sides(|sides| (sides.look(wait), sides.terms.clock()));
        if !was_signalled && self.wait.is_signalled() {
            return Next::Poll;
        }
        match look {
            Look::Wait(until) => {
                self.alarm.set(clock, until, context);
                Next::Wait
            }
            Look::Over | Look::Answered => Next::Over,
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
        let pushed = frame::push(&mut self.frame);
        self.stage = Stage::Dropping { gone, pushed };
    }
}

impl Drop for InlineCall {
    #[inline]
    fn drop(&mut self) {
        if let Stage::Dropping { gone, pushed } = self.stage {
            self.dropped(gone, pushed);
        }
    }
}

impl InlineCall {
    /// The operation was dropped.
    #[cold]
    fn dropped(&mut self, gone: bool, pushed: bool) {
        if pushed {
            frame::pop(&mut self.frame);
        }
        if gone && !self.frame.is_unnoticed() {
            self.frame
                .sides(|sides| sides.dropped(sides.leave_dropped(), None));
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
