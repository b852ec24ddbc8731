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
use crate::token::node::Node;
use crate::token::spec::{Spec, Watch};
use crate::unwind;

use super::TokenParam;
use super::alarm::CallerAlarm;
use super::ask::Ask;
use super::sides::{Classify, Ended, Look, Shared, Wait};
use super::terms::{self, Opening};

/// A call whose operation has started, and its frame. The token is made now only if there is something for it to hear.
fn start(opening: Opening) -> (Shared, Frame) {
    let Opening {
        terms,
        mut frame,
        parents,
    } = opening;
    if !parents.is_empty() {
        let spec = Spec {
            origin: frame.origin,
            deadline: frame.deadline,
            cause: frame.cause,
            watch: Watch::Clocked,
            is_call: true,
            owner: None,
        };
        frame.token = Some(CancelToken(Node::new(spec, &parents, ())));
    }
    (Shared::started(terms), frame)
}

fn token_of(frame: Option<&Frame>) -> Option<&Node> {
    Some(&*frame?.token.as_ref()?.0)
}

/// The operation has ended where its caller is: the verdict. A panic goes on.
fn conclude<R>(
    shared: &Shared,
    frame: Option<&Frame>,
    classify: Classify<R>,
    ended: Ended<R>,
) -> Result<R, TimeoutError> {
    let token = token_of(frame);
    let (ended, report) = shared.assess(ended, classify);
    if shared.stands(&report, token) && shared.verdict.answer() {
        shared.answered(report, token);
        return Ok(ended.unwrap_or_else(|payload| resume_unwind(payload)));
    }
    unwind::dispose(ended);
    shared.stop(report);
    Err(shared.unanswered(shared.verdict.leave(), token, false))
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
    let (shared, mut frame) = start(terms::open(ask, Clock::Real)?);
    let param = A::of(|| frame.token().clone());
    let mut frame = Some(frame);
    let ended = {
        let _inside = context::enter(&mut frame);
        unwind::catch(|| op(param))
    };
    conclude(&shared, frame.as_ref(), classify, ended)
}

pin_project! {
    /// A call whose operation is polled in place.
    ///
    /// Cancel safe if the operation is: a future that is dropped before its first poll has called nothing; one that is dropped
    /// later has its token fired and its operation dropped.
    pub struct InlineCall<R, A, F, Fut> {
        #[pin]
        stage: Stage<F, Fut>,
        classify: Classify<R>,
        param: PhantomData<fn(A)>,
    }

    impl<R, A, F, Fut> PinnedDrop for InlineCall<R, A, F, Fut> {
        fn drop(this: Pin<&mut Self>) {
            if let StageProj::During { future, during } = this.project().stage.project() {
                during.abandon(future);
            }
        }
    }
}

pin_project! {
    #[project = StageProj]
    #[project_replace = StageReplaced]
    enum Stage<F, Fut> {
        /// Until the first poll.
        Before { ask: Ask, op: F },
        /// From then on until the verdict.
        During {
            #[pin]
            future: Option<Fut>,
            during: During,
        },
        Done,
    }
}

/// What lasts from the first poll to the verdict.
struct During {
    shared: Shared,
    frame: Option<Frame>,
    wait: Wait,
    alarm: CallerAlarm,
}

impl During {
    fn new(shared: Shared, frame: Frame) -> Self {
        Self {
            shared,
            frame: Some(frame),
            wait: Wait::default(),
            alarm: CallerAlarm::default(),
        }
    }

    fn token(&self) -> Option<&Node> {
        token_of(self.frame.as_ref())
    }

    /// Runs a piece of the operation inside its call. `Err` is its panic.
    fn inside<T>(&mut self, piece: impl FnOnce() -> T) -> Ended<T> {
        let _inside = context::enter(&mut self.frame);
        unwind::catch(piece)
    }

    /// Polls the operation; once it has ended its future is dropped.
    fn poll<Fut: Future>(
        &mut self,
        mut future: Pin<&mut Option<Fut>>,
        context: &mut Context<'_>,
    ) -> Poll<Ended<Fut::Output>> {
        let polled = self.inside(|| match future.as_mut().as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Pending,
        });
        let ended = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Ok(value),
            Err(payload) => Err(payload),
        };
        Poll::Ready(match self.inside(|| future.set(None)) {
            Ok(()) => ended,
            // A panic while the operation's own variables are dropped is the operation's.
            Err(payload) => {
                unwind::dispose(ended);
                Err(payload)
            }
        })
    }

    /// Looks at the clock and the token, with the task registered first. `true` once the wait is over.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(frame) = &self.frame
            && let Some(token) = &frame.token
        {
            token.0.attend();
            token.0.set_owner(context.waker());
        }
        let token = token_of(self.frame.as_ref());
        match self.shared.look(&mut self.wait, token) {
            Look::Wait(until) => {
                self.alarm.set(until, context);
                false
            }
            Look::Over | Look::Answered => true,
        }
    }

    /// Polls until the operation has ended, or the wait for it: then its future is dropped, and `None` is returned.
    fn drive<Fut: Future>(
        &mut self,
        mut future: Pin<&mut Option<Fut>>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Ended<Fut::Output>>> {
        loop {
            if let Poll::Ready(ended) = self.poll(future.as_mut(), context) {
                return Poll::Ready(Some(ended));
            }
            let was_signalled = self.wait.is_signalled();
            let is_over = self.is_over(context);
            if !was_signalled && self.wait.is_signalled() {
                // The signal has just been given: one more poll, for the operation to see it.
                continue;
            }
            if is_over {
                return Poll::Ready(self.inside(|| future.set(None)).err().map(Err));
            }
            return Poll::Pending;
        }
    }

    /// The verdict, from what `drive` has come to.
    fn conclude<R>(
        self,
        ended: Option<Ended<R>>,
        classify: Classify<R>,
    ) -> Result<R, TimeoutError> {
        if let Some(ended) = ended {
            return conclude(&self.shared, self.frame.as_ref(), classify, ended);
        }
        let phase = self.shared.leave_dropped();
        Err(self.shared.unanswered(phase, self.token(), false))
    }

    /// The caller has gone: the token fires, then the operation is dropped.
    fn abandon<Fut>(&mut self, mut future: Pin<&mut Option<Fut>>) {
        if let Some(token) = self.token() {
            token.fire(Cause::Cancelled, None);
        }
        if let Err(payload) = self.inside(|| future.set(None)) {
            unwind::dispose(payload);
        }
        let phase = self.shared.leave_dropped();
        self.shared.dropped(phase, self.token(), None);
    }
}

/// Polls the future of `op` in place.
pub(crate) fn async_inline<R, A, F, Fut>(
    ask: Ask,
    classify: Classify<R>,
    op: F,
) -> InlineCall<R, A, F, Fut> {
    InlineCall {
        stage: Stage::Before { ask, op },
        classify,
        param: PhantomData,
    }
}

/// The first poll: the call starts, and its operation's future is made in place.
fn begin<A, F, Fut>(mut stage: Pin<&mut Stage<F, Fut>>) -> Result<(), TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
{
    let StageReplaced::Before { ask, op } = stage.as_mut().project_replace(Stage::Done) else {
        panic!("a finished call was polled again");
    };
    let (shared, mut frame) = start(terms::open(ask, Clock::EXECUTOR)?);
    // An async block is only built here; nothing of the user's runs yet.
    let future = Some(op(A::of(|| frame.token().clone())));
    let during = During::new(shared, frame);
    stage.project_replace(Stage::During { future, during });
    Ok(())
}

impl<R, A, F, Fut> fmt::Debug for InlineCall<R, A, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineCall").finish_non_exhaustive()
    }
}

impl<R, A, F, Fut> Future for InlineCall<R, A, F, Fut>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    Fut: Future<Output = R>,
{
    type Output = Result<R, TimeoutError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut stage = this.stage;
        if !matches!(*stage, Stage::During { .. })
            && let Err(error) = begin::<A, _, _>(stage.as_mut())
        {
            return Poll::Ready(Err(error));
        }
        let StageProj::During { future, during } = stage.as_mut().project() else {
            unreachable!("the call has begun");
        };
        let Poll::Ready(ended) = during.drive(future, context) else {
            return Poll::Pending;
        };
        let StageReplaced::During { during, .. } = stage.project_replace(Stage::Done) else {
            unreachable!("the call has begun");
        };
        Poll::Ready(during.conclude(ended, *this.classify))
    }
}
