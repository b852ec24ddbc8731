//! [`Outcome`]: the ending of a call as a value, and [`CallStatus`], the same in one word.

use std::fmt;

use crate::error::TimeoutError;

/// How a call ended, in one word for logs and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallStatus {
    /// An answer in time.
    Ok,
    /// An error in time.
    Failed,
    /// The call's own limit passed first.
    TimedOut,
    /// An inherited or shared deadline passed first.
    DeadlineExceeded,
    /// A token was cancelled first.
    UpstreamCancelled,
    /// The operation never ran.
    NotStarted,
}

impl fmt::Display for CallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The ending of a call: exactly one of six.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::{CallStatus, Outcome, Timeout};
///
/// let limit = Timeout::new("parse", Duration::from_secs(5))?;
/// let outcome = limit.outcome(|_token| "12".parse::<u32>());
/// assert_eq!(outcome.status(), CallStatus::Ok);
/// assert_eq!(outcome.success(), Some(12));
/// # Ok::<(), timeout_runtime::InvalidLimit>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a call may have ended without an answer"]
pub enum Outcome<T, E> {
    /// The operation answered in time.
    Success(T),
    /// The operation failed in time, with its own error.
    Failure(E),
    /// The call's own limit passed first.
    TimedOut(TimeoutError),
    /// An inherited or shared deadline passed first.
    DeadlineExceeded(TimeoutError),
    /// A token was cancelled first.
    Cancelled(TimeoutError),
    /// The operation never ran.
    NotStarted(TimeoutError),
}

impl<T, E> Outcome<T, E> {
    pub(crate) fn of(answer: Result<Result<T, E>, TimeoutError>) -> Self {
        match answer {
            Ok(Ok(value)) => Self::Success(value),
            Ok(Err(error)) => Self::Failure(error),
            Err(error) => match error.status() {
                CallStatus::TimedOut => Self::TimedOut(error),
                CallStatus::DeadlineExceeded => Self::DeadlineExceeded(error),
                CallStatus::UpstreamCancelled => Self::Cancelled(error),
                _ => Self::NotStarted(error),
            },
        }
    }

    /// The ending in one word.
    #[must_use]
    pub fn status(&self) -> CallStatus {
        match self {
            Self::Success(_) => CallStatus::Ok,
            Self::Failure(_) => CallStatus::Failed,
            Self::TimedOut(_) => CallStatus::TimedOut,
            Self::DeadlineExceeded(_) => CallStatus::DeadlineExceeded,
            Self::Cancelled(_) => CallStatus::UpstreamCancelled,
            Self::NotStarted(_) => CallStatus::NotStarted,
        }
    }

    /// Whether the operation answered in time.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success(_))
    }

    /// The answer, if there is one.
    #[must_use]
    pub fn success(self) -> Option<T> {
        match self {
            Self::Success(value) => Some(value),
            _ => None,
        }
    }

    /// The operation's own error, if it failed in time.
    #[must_use]
    pub fn failure(self) -> Option<E> {
        match self {
            Self::Failure(error) => Some(error),
            _ => None,
        }
    }

    /// Why there is no answer and no error, if there is neither.
    #[must_use]
    pub fn timeout_error(&self) -> Option<&TimeoutError> {
        match self {
            Self::Success(_) | Self::Failure(_) => None,
            Self::TimedOut(error)
            | Self::DeadlineExceeded(error)
            | Self::Cancelled(error)
            | Self::NotStarted(error) => Some(error),
        }
    }

    /// One value out of each of the three kinds of ending: an answer, an error, neither.
    pub fn fold<R>(
        self,
        success: impl FnOnce(T) -> R,
        failure: impl FnOnce(E) -> R,
        neither: impl FnOnce(TimeoutError) -> R,
    ) -> R {
        match self {
            Self::Success(value) => success(value),
            Self::Failure(error) => failure(error),
            Self::TimedOut(error)
            | Self::DeadlineExceeded(error)
            | Self::Cancelled(error)
            | Self::NotStarted(error) => neither(error),
        }
    }

    /// The same ending with the answer changed.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U, E> {
        match self {
            Self::Success(value) => Outcome::Success(change(value)),
            Self::Failure(error) => Outcome::Failure(error),
            Self::TimedOut(error) => Outcome::TimedOut(error),
            Self::DeadlineExceeded(error) => Outcome::DeadlineExceeded(error),
            Self::Cancelled(error) => Outcome::Cancelled(error),
            Self::NotStarted(error) => Outcome::NotStarted(error),
        }
    }

    /// The same ending with the operation's own error changed.
    pub fn map_failure<F>(self, change: impl FnOnce(E) -> F) -> Outcome<T, F> {
        match self {
            Self::Success(value) => Outcome::Success(value),
            Self::Failure(error) => Outcome::Failure(change(error)),
            Self::TimedOut(error) => Outcome::TimedOut(error),
            Self::DeadlineExceeded(error) => Outcome::DeadlineExceeded(error),
            Self::Cancelled(error) => Outcome::Cancelled(error),
            Self::NotStarted(error) => Outcome::NotStarted(error),
        }
    }

    /// The answer, or an error: the operation's own, or the [`TimeoutError`] converted.
    ///
    /// # Errors
    ///
    /// Whenever there is no answer.
    pub fn into_result(self) -> Result<T, E>
    where
        E: From<TimeoutError>,
    {
        self.fold(Ok, Err, |error| Err(E::from(error)))
    }
}

impl<T, E: From<TimeoutError>> From<Outcome<T, E>> for Result<T, E> {
    fn from(outcome: Outcome<T, E>) -> Self {
        outcome.into_result()
    }
}
