//! Converts the result of a call into the value that the caller gets.

use crate::context::frame;
use crate::outcome::FromTimeout;
use crate::outcome::Outcome;
use crate::outcome::TimeoutError;

/// A function that converts a [`TimeoutError`] into the return value.
pub(crate) type Convert<R> = fn(TimeoutError) -> R;

/// A conversion of the result of a call.
pub trait IntoReturn<R> {
    /// The value that the caller gets.
    type Output;

    /// Converts the result.
    fn into_return(self, result: Result<R, TimeoutError>) -> Self::Output;
}

/// Returns the result of the operation, or converts the error with the function `B`, outside the
/// call.
#[derive(Debug)]
pub struct OrConvert<B>(pub(crate) B);

impl<R, B: FnOnce(TimeoutError) -> R> IntoReturn<R> for OrConvert<B> {
    type Output = R;

    #[inline]
    fn into_return(self, result: Result<R, TimeoutError>) -> R {
        match result {
            Ok(result) => result,
            Err(error) => outside_the_call(self.0, error),
        }
    }
}

impl<R: FromTimeout> OrConvert<Convert<R>> {
    /// Converts errors with the return type itself.
    #[inline]
    pub(crate) fn from_timeout() -> Self {
        Self(R::from_timeout)
    }
}

/// Runs a conversion of the user. It runs outside the call, which has ended.
#[cold]
fn outside_the_call<T>(convert: impl FnOnce(TimeoutError) -> T, error: TimeoutError) -> T {
    frame::outside(|| convert(error))
}

/// Converts into an [`Outcome`].
pub(crate) struct IntoOutcome;

impl<T, E> IntoReturn<Result<T, E>> for IntoOutcome {
    type Output = Outcome<T, E>;

    fn into_return(self, result: Result<Result<T, E>, TimeoutError>) -> Outcome<T, E> {
        Outcome::of(result)
    }
}

/// Converts into a `Result`; `E::from` converts the error.
pub(crate) struct IntoResult;

impl<T, E: From<TimeoutError>> IntoReturn<Result<T, E>> for IntoResult {
    type Output = Result<T, E>;

    #[inline]
    fn into_return(self, result: Result<Result<T, E>, TimeoutError>) -> Result<T, E> {
        match result {
            Ok(result) => result,
            Err(error) => Err(outside_the_call(E::from, error)),
        }
    }
}
