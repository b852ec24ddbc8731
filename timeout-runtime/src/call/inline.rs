//! Operations where their caller is: run on its thread, or polled in place.

use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::alarm::CallerAlarm;
use crate::deadline::Clock;
use crate::error::TimeoutError;
use crate::frame::{self, Frame};
use crate::token::CancelToken;
use crate::token::node::{Node, Watch};
use crate::unwind;

use super::TokenParam;
use super::ask::Ask;
use super::open::{Opening, open};
use super::rim::Finish;
use super::sides::{Classify, Ended, Look, Sides, State, Wait};

/// The frame of a call that starts. Its token is made now only if there is something for it to hear.
fn begin(ask: Ask, clock: Clock) -> Result<Frame, TimeoutError> {
    let Opening { terms, parents } = open(ask, clock)?;
    let token = (!parents.is_empty()).then(|| {
        let node = Node::new(terms.clone(), Watch::Clocked, None, &parents, ());
        CancelToken(node)
    });
    Ok(Frame::new(terms, token))
}

impl Frame {
    /// The call as its two sides see it, of which the caller is both.
    fn sides<'a>(&'a self, state: &'a State) -> Sides<'a> {
        Sides {
            terms: &self.terms,
            state,
            token: self.token.as_ref().map(|token| &*token.0),
        }
    }

    /// The same call with a token that was given out ahead of it; if that has fired by now the call does not start.
    fn with_token(mut self, token: &CancelToken) -> Result<Self, TimeoutError> {
        if let Some((cause, reason)) = token.0.signal() {
            return Err(self.terms.not_started(cause, reason));
        }
        token.0.begin(self.token().0.clone());
        self.token = Some(token.clone());
        Ok(self)
    }

    /// Runs a piece of the operation inside its call. `Err` is its panic.
    fn inside<T>(&mut self, piece: impl FnOnce() -> T) -> Ended<T> {
        let _inside = frame::enter(self);
        unwind::catch(piece)
    }

    /// The operation has ended where its caller is: the verdict. A panic goes on.
    fn conclude<R>(&self, classify: Classify<R>, ended: Ended<R>) -> Result<R, TimeoutError> {
        let state = State::started();
        let sides = self.sides(&state);
        let (ended, report) = sides.assess(ended, classify);
        if sides.stands(&report) && sides.answer() {
            sides.answered(report);
            return Ok(ended.unwrap_or_else(|payload| resume_unwind(payload)));
        }
        unwind::dispose(ended);
        sides.stop(report);
        Err(sides.unanswered(sides.leave(), false))
    }

    /// The operation was dropped where its caller is, since the wait for it is over: the verdict.
    fn give_up(&self) -> TimeoutError {
        let state = State::started();
        let sides = self.sides(&state);
        sides.unanswered(sides.leave_dropped(), false)
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
    let mut frame = begin(ask, Clock::Real)?;
    let param = A::of(|| frame.token().clone());
    let ended = frame.inside(|| op(param));
    frame.conclude(classify, ended)
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
    wait: Wait,
    alarm: CallerAlarm,
}

enum Stage {
    /// The call does not start.
    Refused(TimeoutError),
    /// From the entry until the verdict.
    UnderWay(Frame),
    /// The wait is over, or the caller has gone; the operation is dropped next, inside the pushed frame.
    Dropping {
        gone: bool,
        /// What could not be pushed.
        frame: Option<Frame>,
    },
    /// The operation has ended by itself.
    Over,
}

impl InlineCall {
    /// The call starts now, unless it is refused.
    #[must_use]
    pub fn new(ask: Ask) -> Self {
        Self {
            stage: begin(ask, Clock::EXECUTOR).map_or_else(Stage::Refused, Stage::UnderWay),
            wait: Wait::default(),
            alarm: CallerAlarm::default(),
        }
    }

    /// The call starts now, with an operation that was made before, and with it perhaps the token.
    pub(crate) fn of_made(ask: Ask, token: Option<CancelToken>) -> Self {
        let stage = begin(ask, Clock::EXECUTOR).and_then(|frame| match &token {
            Some(token) => frame.with_token(token),
            None => Ok(frame),
        });
        if let (Some(token), Err(error)) = (token, &stage) {
            token.0.fire(error.cause(), None);
        }
        Self {
            stage: stage.map_or_else(Stage::Refused, Stage::UnderWay),
            wait: Wait::default(),
            alarm: CallerAlarm::default(),
        }
    }

    /// What the operation takes: its token, or nothing.
    pub fn param<A: TokenParam>(&mut self) -> A {
        A::of(|| match &mut self.stage {
            Stage::UnderWay(frame) => frame.token().clone(),
            // Nobody will read it: the operation is not polled.
            _ => CancelToken::never(),
        })
    }

    /// Polls `op` until the verdict.
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
    pub(crate) fn poll<R, Fut: Future<Output = R>>(
        &mut self,
        op: Pin<&mut Fut>,
        classify: Classify<R>,
        context: &mut Context<'_>,
    ) -> Poll<Result<R, TimeoutError>> {
        if let Stage::Refused(error) = &self.stage {
            return Poll::Ready(Err(error.clone()));
        }
        self.drive(op, context)
            .map(|ended| self.conclude(ended, classify))
    }

    /// The caller has gone. If there is no verdict yet, the operation is dropped next.
    pub(crate) fn leave(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::UnderWay(mut frame) => {
                frame.abandon();
                self.drop_next(frame, true);
            }
            stage => self.stage = stage,
        }
    }

    /// Polls the operation until it has ended, or the wait for it: that is `None`.
    fn drive<Fut: Future>(
        &mut self,
        mut op: Pin<&mut Fut>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Ended<Fut::Output>>> {
        let Stage::UnderWay(frame) = &mut self.stage else {
            panic!("a finished call was polled again");
        };
        loop {
            match frame.inside(|| op.as_mut().poll(context)) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(value)) => return Poll::Ready(Some(Ok(value))),
                Err(payload) => return Poll::Ready(Some(Err(payload))),
            }
            let was_signalled = self.wait.is_signalled();
            let is_over = frame.is_over(&mut self.wait, &mut self.alarm, context);
            if !was_signalled && self.wait.is_signalled() {
                // The signal has just been given: one more poll, for the operation to see it.
                continue;
            }
            return if is_over {
                Poll::Ready(None)
            } else {
                Poll::Pending
            };
        }
    }

    /// The verdict, from what `drive` has come to.
    fn conclude<R>(
        &mut self,
        ended: Option<Ended<R>>,
        classify: Classify<R>,
    ) -> Result<R, TimeoutError> {
        let Stage::UnderWay(frame) = std::mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("a call is concluded once");
        };
        if let Some(ended) = ended {
            return frame.conclude(classify, ended);
        }
        let error = frame.give_up();
        self.drop_next(frame, false);
        Err(error)
    }

    /// The operation is dropped next, inside its call.
    fn drop_next(&mut self, frame: Frame, gone: bool) {
        let frame = frame::push(frame);
        self.stage = Stage::Dropping { gone, frame };
    }
}

impl Drop for InlineCall {
    fn drop(&mut self) {
        let Stage::Dropping { gone, frame } = &mut self.stage else {
            return;
        };
        if let Some(frame) = frame.take().or_else(frame::pop)
            && *gone
        {
            let state = State::started();
            let sides = frame.sides(&state);
            sides.dropped(sides.leave_dropped(), None);
        }
    }
}

impl Frame {
    /// Looks at the clock and the token, with the task registered first. `true` once the wait is over.
    fn is_over(&self, wait: &mut Wait, alarm: &mut CallerAlarm, context: &mut Context<'_>) -> bool {
        if let Some(CancelToken(token)) = &self.token {
            token.attend();
            token.set_owner(context.waker());
        }
        match self.sides(&State::started()).look(wait) {
            Look::Wait(until) => {
                alarm.set(self.terms.clock, until, context);
                false
            }
            Look::Over | Look::Answered => true,
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

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        let Self { call, op, rim } = &mut *self;
        let Some((classify, _)) = rim else {
            panic!("a finished call was polled again");
        };
        let polled = call.poll(op.as_mut(), *classify, context);
        polled.map(|ending| match rim.take() {
            Some((_, finish)) => finish.finish(ending),
            None => unreachable!("it was there before the poll"),
        })
    }
}

impl<R, Fut, M> Drop for Run<'_, R, Fut, M> {
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
