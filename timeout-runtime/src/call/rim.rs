//! The rim of a call: its ending becomes what the caller is to get.

use crate::error::TimeoutError;
use crate::frame;
use crate::outcome::Outcome;

/// A function that makes the return value of an error.
pub(crate) type Convert<R> = fn(TimeoutError) -> R;

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

    #[inline]
    fn finish(self, ending: Result<R, TimeoutError>) -> R {
        match ending {
            Ok(answer) => answer,
            Err(error) => outside_the_call(self.0, error),
        }
    }
}

/// What is made of the error is somebody's code, which must not find itself inside a call that is over.
#[cold]
fn outside_the_call<T>(make: impl FnOnce(TimeoutError) -> T, error: TimeoutError) -> T {
    frame::outside(|| make(error))
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

    #[inline]
    fn finish(self, ending: Result<Result<T, E>, TimeoutError>) -> Result<T, E> {
        match ending {
            Ok(answer) => answer,
            Err(error) => Err(outside_the_call(E::from, error)),
        }
    }
}
