//! Operations where their caller is: run on its thread, or polled in place.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::context::{self, Frame};
use crate::deadline::Clock;
use crate::error::{Cause, TimeoutError};
use crate::token::CancelToken;
use crate::token::node::{Node, Watch};
use crate::unwind;

use super::TokenParam;
use super::alarm::CallerAlarm;
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
    Ok(Frame { terms, token })
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

    /// Runs a piece of the operation inside its call. `Err` is its panic.
    fn inside<T>(&mut self, piece: impl FnOnce() -> T) -> Ended<T> {
        let _inside = context::enter(self);
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

/// Polls the future of `op` in place.
pub(crate) fn async_inline<R, A, F, Fut, M>(
    ask: Ask,
    classify: Classify<R>,
    op: F,
    finish: M,
) -> InlineCall<R, A, F, Fut, M> {
    InlineCall::Before {
        start: Some((ask, op)),
        rim: Some((classify, finish)),
        param: PhantomData,
    }
}

// One type, with the operation's future right inside: each type between two nested calls is a level that the compiler has to
// follow, and each function that holds the future by value is a copy of it on the stack. That is why what is to be done around
// the future when the caller goes away is said by the fields before and after it.
pin_project! {
    /// A call whose operation is polled in place.
    ///
    /// Cancel safe if the operation is: a future that is dropped before its first poll has called nothing; one that is dropped
    /// later has its token fired and its operation dropped.
    #[project = Stage]
    #[must_use = "futures do nothing unless polled"]
    pub enum InlineCall<R, A, F, Fut, M> {
        /// Until the first poll.
        Before {
            start: Option<(Ask, F)>,
            rim: Option<(Classify<R>, M)>,
            param: PhantomData<fn(A)>,
        },
        /// From then on until the verdict. Dropped from top to bottom.
        During {
            waiting: Waiting,
            #[pin]
            future: Fut,
            gone: Gone,
            rim: Option<(Classify<R>, M)>,
        },
        /// After it.
        Done,
    }
}

/// The caller's side of a call that is polled in place. Dropping it means that the caller has gone: the token fires, and the
/// operation's future, which is dropped next, finds its call's frame in place.
pub struct Waiting {
    // Until the verdict.
    frame: Option<Frame>,
    wait: Wait,
    alarm: CallerAlarm,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            if let Some(CancelToken(token)) = &frame.token {
                token.fire(Cause::Cancelled, None);
            }
            context::push(frame);
        }
    }
}

/// Dropping it means that the operation's future has been dropped because the caller has gone: that is the call's ending.
pub struct Gone {
    decided: bool,
}

impl Drop for Gone {
    fn drop(&mut self) {
        if !self.decided
            && let Some(frame) = context::pop()
        {
            let state = State::started();
            let sides = frame.sides(&state);
            sides.dropped(sides.leave_dropped(), None);
        }
    }
}

impl Waiting {
    /// Polls the operation until it has ended, or the wait for it: that is `None`.
    fn drive<Fut: Future>(
        &mut self,
        mut future: Pin<&mut Fut>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Ended<Fut::Output>>> {
        let Some(frame) = &mut self.frame else {
            unreachable!("the call is under way");
        };
        loop {
            match frame.inside(|| future.as_mut().poll(context)) {
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

impl<R, A, F, Fut, M> InlineCall<R, A, F, Fut, M> {
    /// At the first poll: the call starts, and its operation's future is made in place.
    #[inline(never)]
    fn begin(mut self: Pin<&mut Self>) -> Result<(), (TimeoutError, M)>
    where
        A: TokenParam,
        F: FnOnce(A) -> Fut,
    {
        let Stage::Before { start, rim, .. } = self.as_mut().project() else {
            return Ok(());
        };
        let (Some((ask, op)), Some((classify, finish))) = (start.take(), rim.take()) else {
            panic!("a finished call was polled again");
        };
        let mut frame = match begin(ask, Clock::EXECUTOR) {
            Ok(frame) => frame,
            Err(error) => return Err((error, finish)),
        };
        let param = A::of(|| frame.token().clone());
        self.set(Self::During {
            waiting: Waiting {
                frame: Some(frame),
                wait: Wait::default(),
                alarm: CallerAlarm::default(),
            },
            // An async block is only built here; nothing of the user's runs yet.
            future: op(param),
            gone: Gone { decided: false },
            rim: Some((classify, finish)),
        });
        Ok(())
    }

    /// The verdict, from what `drive` has come to.
    #[inline(never)]
    fn conclude(mut self: Pin<&mut Self>, mut ended: Option<Ended<R>>) -> M::Output
    where
        M: Finish<R>,
    {
        let Stage::During {
            waiting, gone, rim, ..
        } = self.as_mut().project()
        else {
            unreachable!("a call is concluded once");
        };
        gone.decided = true;
        let (Some(mut frame), Some((classify, finish))) = (waiting.frame.take(), rim.take()) else {
            unreachable!("a call is concluded once");
        };
        // A panic while the operation's own variables are dropped is the operation's.
        if let Err(payload) = frame.inside(|| self.set(Self::Done)) {
            unwind::dispose(ended.replace(Err(payload)));
        }
        finish.finish(match ended {
            Some(ended) => frame.conclude(classify, ended),
            None => Err(frame.give_up()),
        })
    }
}

impl<R, A, F, Fut, M> fmt::Debug for InlineCall<R, A, F, Fut, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineCall").finish_non_exhaustive()
    }
}

impl<R, A, F, Fut, M> Future for InlineCall<R, A, F, Fut, M>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    Fut: Future<Output = R>,
    M: Finish<R>,
{
    type Output = M::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        if let Err((error, finish)) = self.as_mut().begin() {
            return Poll::Ready(finish.finish(Err(error)));
        }
        let Stage::During {
            waiting, future, ..
        } = self.as_mut().project()
        else {
            panic!("a finished call was polled again");
        };
        match waiting.drive(future, context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(ended) => Poll::Ready(self.conclude(ended)),
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

impl fmt::Debug for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gone")
    }
}
