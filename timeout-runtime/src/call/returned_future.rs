//! Calls of functions that return futures: the function runs at the call, and its future is polled
//! in place. The limit starts at the first poll.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::token::node::{NodeRef, Watch};
use crate::token::{CancelToken, DropGuard, Owner};

use super::TokenParam;
use super::convert::IntoReturn;
use super::options::CallOptions;
use super::polled::InlineCall;
use super::report::Classify;

pin_project! {
    /// A call that starts at its first poll. Its operation already exists.
    ///
    /// Cancel safe if the operation is. Dropping the call cancels its token and drops the
    /// operation. A started call cancels first.
    #[must_use = "futures do nothing unless polled"]
    pub struct ReturnedFutureCall<R, Fut, M> {
        // The order matters: the operation is dropped before `stage`, inside its call.
        #[pin]
        op: Option<Fut>,
        stage: CallStage,
        conversion: Option<(Classify<R>, M)>,
    }

    impl<R, Fut, M> PinnedDrop for ReturnedFutureCall<R, Fut, M> {
        fn drop(this: Pin<&mut Self>) {
            if let CallStage::UnderWay(call) = this.project().stage {
                call.leave();
            }
        }
    }
}

enum CallStage {
    /// Before the first poll. The guard holds the token of the operation, if the operation takes
    /// one.
    Before(CallOptions, Option<DropGuard>),
    UnderWay(InlineCall),
    Over,
}

/// Calls `op` to create the future. The call starts later.
pub(crate) fn returned_future<R, A, F, Fut, M>(
    options: CallOptions,
    classify: Classify<R>,
    op: F,
    convert: M,
) -> ReturnedFutureCall<R, Fut, M>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
{
    let mut guard = None;
    let param = A::create(|| {
        let owner = Owner::later(options.policy.clone(), options.limit);
        let node = NodeRef::new(owner, Watch::Clocked, &[]);
        let token = CancelToken(node);
        guard = Some(token.drop_guard());
        token
    });
    ReturnedFutureCall {
        op: Some(op(param)),
        stage: CallStage::Before(options, guard),
        conversion: Some((classify, convert)),
    }
}

impl CallStage {
    /// The call. Starts it if this is the first poll.
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
        if let Self::Before(options, token) = std::mem::replace(self, Self::Over) {
            *self = Self::UnderWay(match token.map(DropGuard::disarm) {
                Some(token) => InlineCall::with_returned_future(options, &token),
                None => InlineCall::new(options),
            });
        }
    }
}

impl<R, Fut: Future<Output = R>, M: IntoReturn<R>> Future for ReturnedFutureCall<R, Fut, M> {
    type Output = M::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        let mut this = self.project();
        let call = this.stage.call();
        let (Some(mut op), Some((classify, _))) =
            (this.op.as_mut().as_pin_mut(), this.conversion.as_ref())
        else {
            panic!("a finished call was polled again");
        };
        let Poll::Ready(ending) = call.poll(&mut op, *classify, context, |ending| ending) else {
            return Poll::Pending;
        };
        {
            // Dropped after the operation, even if dropping the operation panics.
            let _call = std::mem::replace(this.stage, CallStage::Over);
            this.op.set(None);
        }
        match this.conversion.take() {
            Some((_, convert)) => Poll::Ready(convert.into_return(ending)),
            None => unreachable!("it was `Some` before the poll"),
        }
    }
}

impl<R, Fut, M> fmt::Debug for ReturnedFutureCall<R, Fut, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReturnedFutureCall").finish_non_exhaustive()
    }
}
