//! The rim of a call: its ending becomes what the caller is to get.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::context;
use crate::error::TimeoutError;
use crate::outcome::Outcome;

/// What is made of an ending.
pub trait Finish<R> {
    /// What the caller gets.
    type Output;

    /// Makes it.
    fn finish(self, ending: Result<R, TimeoutError>) -> Self::Output;
}

/// The answer itself, or what the function in here makes of the error, outside the call.
#[derive(Debug)]
pub struct Or<B>(pub(crate) B);

impl<R, B: FnOnce(TimeoutError) -> R> Finish<R> for Or<B> {
    type Output = R;

    fn finish(self, ending: Result<R, TimeoutError>) -> R {
        ending.unwrap_or_else(|error| context::outside(|| (self.0)(error)))
    }
}

/// An outcome.
pub(crate) struct AsOutcome;

impl<T, E> Finish<Result<T, E>> for AsOutcome {
    type Output = Outcome<T, E>;

    fn finish(self, ending: Result<Result<T, E>, TimeoutError>) -> Outcome<T, E> {
        Outcome::of(ending)
    }
}

/// A plain result.
pub(crate) struct AsResult;

impl<T, E: From<TimeoutError>> Finish<Result<T, E>> for AsResult {
    type Output = Result<T, E>;

    fn finish(self, ending: Result<Result<T, E>, TimeoutError>) -> Result<T, E> {
        Outcome::of(ending).into_result()
    }
}

pin_project! {
    /// An async call with its rim. Written out, since an async block would hold the call twice; and named, since the bounds of the
    /// function that makes it are not to be asked for again where it is awaited.
    #[must_use = "futures do nothing unless polled"]
    pub struct Rim<R, C, M> {
        #[pin]
        call: C,
        make: Option<M>,
        answer: PhantomData<fn() -> R>,
    }
}

impl<R, C, M> Rim<R, C, M> {
    pub(crate) fn new(call: C, make: M) -> Self {
        Self {
            call,
            make: Some(make),
            answer: PhantomData,
        }
    }
}

impl<R, C, M> fmt::Debug for Rim<R, C, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rim").finish_non_exhaustive()
    }
}

impl<R, C, M> Future for Rim<R, C, M>
where
    C: Future<Output = Result<R, TimeoutError>>,
    M: Finish<R>,
{
    type Output = M::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        let this = self.project();
        let Poll::Ready(ending) = this.call.poll(context) else {
            return Poll::Pending;
        };
        match this.make.take() {
            Some(make) => Poll::Ready(make.finish(ending)),
            None => panic!("a finished call was polled again"),
        }
    }
}
