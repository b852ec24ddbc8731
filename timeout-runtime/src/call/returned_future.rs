//! Operations that are made at the call, by a function that returns a future: polled in place, within the limit from the first
//! poll on.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::terms::Terms;
use crate::token::node::{NodeRef, Watch};
use crate::token::{CancelToken, DropGuard};

use super::TokenParam;
use super::ask::Ask;
use super::polled::InlineCall;
use super::report::Classify;
use super::rim::Finish;

pin_project! {
    /// A call that starts when it is first polled; its operation is there already.
    ///
    /// Cancel safe if the operation is: a call that is dropped fires its token and drops the operation, in this order once it has started.
    #[must_use = "futures do nothing unless polled"]
    pub struct ReturnedFutureCall<R, Fut, M> {
        // In this order: the operation is dropped inside its call.
        #[pin]
        op: Option<Fut>,
        stage: Stage,
        rim: Option<(Classify<R>, M)>,
    }

    impl<R, Fut, M> PinnedDrop for ReturnedFutureCall<R, Fut, M> {
        fn drop(this: Pin<&mut Self>) {
            if let Stage::UnderWay(call) = this.project().stage {
                call.leave();
            }
        }
    }
}

enum Stage {
    /// Until the first poll. The token is the one that the operation was made with, if it asked for one.
    Before(Ask, Option<DropGuard>),
    UnderWay(InlineCall),
    Over,
}

/// Has `op` make its operation now; the call starts later.
pub(crate) fn returned_future<R, A, F, Fut, M>(
    ask: Ask,
    classify: Classify<R>,
    op: F,
    finish: M,
) -> ReturnedFutureCall<R, Fut, M>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
{
    let mut guard = None;
    let param = A::of(|| {
        let terms = Terms::ahead(ask.policy.clone(), ask.limit);
        let token = CancelToken(NodeRef::new(terms, Watch::Clocked, &[]));
        guard = Some(token.drop_guard());
        token
    });
    ReturnedFutureCall {
        op: Some(op(param)),
        stage: Stage::Before(ask, guard),
        rim: Some((classify, finish)),
    }
}

impl Stage {
    /// The call, which starts now if it has not before.
    fn call(&mut self) -> &mut InlineCall {
        if matches!(self, Self::Before(..)) {
            self.start();
        }
        match self {
            Self::UnderWay(call) => call,
            Self::Before(..) | Self::Over => panic!("a finished call was polled again"),
        }
    }

    fn start(&mut self) {
        if let Self::Before(ask, token) = std::mem::replace(self, Self::Over) {
            *self = Self::UnderWay(match token.map(DropGuard::disarm) {
                Some(token) => InlineCall::of_made(ask, &token),
                None => InlineCall::new(ask),
            });
        }
    }
}

impl<R, Fut: Future<Output = R>, M: Finish<R>> Future for ReturnedFutureCall<R, Fut, M> {
    type Output = M::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        let mut this = self.project();
        let call = this.stage.call();
        let (Some(mut op), Some((classify, _))) =
            (this.op.as_mut().as_pin_mut(), this.rim.as_ref())
        else {
            panic!("a finished call was polled again");
        };
        let Poll::Ready(ending) = call.poll(&mut op, *classify, context, |ending| ending) else {
            return Poll::Pending;
        };
        {
            // Dropped after the operation, also if that panics.
            let _call = std::mem::replace(this.stage, Stage::Over);
            this.op.set(None);
        }
        match this.rim.take() {
            Some((_, finish)) => Poll::Ready(finish.finish(ending)),
            None => unreachable!("it was there before the poll"),
        }
    }
}

impl<R, Fut, M> fmt::Debug for ReturnedFutureCall<R, Fut, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReturnedFutureCall").finish_non_exhaustive()
    }
}
