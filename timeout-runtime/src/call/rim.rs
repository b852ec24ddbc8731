//! The rim of an async call: its ending becomes what the caller is to get.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::error::TimeoutError;

pin_project! {
    /// A call, and what is made of its ending. Written out, since an async block would hold the call twice.
    #[must_use = "futures do nothing unless polled"]
    pub(crate) struct Rim<C, M> {
        #[pin]
        call: C,
        make: Option<M>,
    }
}

impl<C, M> Rim<C, M> {
    pub(crate) fn new(call: C, make: M) -> Self {
        Self {
            call,
            make: Some(make),
        }
    }
}

impl<C, M, R, O> Future for Rim<C, M>
where
    C: Future<Output = Result<R, TimeoutError>>,
    M: FnOnce(Result<R, TimeoutError>) -> O,
{
    type Output = O;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<O> {
        let this = self.project();
        let Poll::Ready(ending) = this.call.poll(context) else {
            return Poll::Pending;
        };
        match this.make.take() {
            Some(make) => Poll::Ready(make(ending)),
            None => panic!("a finished call was polled again"),
        }
    }
}
