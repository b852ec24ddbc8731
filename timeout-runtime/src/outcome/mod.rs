//! [`Outcome`]: how a call ended, and [`CallStatus`], the same without the value.

mod endings;
mod error;
mod returns;

use std::fmt;

pub(crate) use endings::endings;
pub use error::{Cause, InvalidLimit, TimeoutError};
pub(crate) use error::{Reason, Rounded};
pub(crate) use returns::of_result;
pub use returns::{FromTimeout, Returned, panic_on_timeout};

macro_rules! outcome_and_status {
    ($($(#[$doc:meta])* $outcome:ident($value:ty), $status:ident, $event:ident, [$($cause:ident),*],
        $word:literal;)*) => {
        /// How a call ended: exactly one of six outcomes.
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
        #[must_use = "a call may have ended without a result"]
        pub enum Outcome<T, E> {
            $($(#[$doc])* $outcome($value),)*
        }

        /// How a call ended, without its value: for logs and tables. `Display` prints the word that
        /// [`as_str`](Self::as_str) returns.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum CallStatus {
            $($(#[$doc])* $status,)*
        }

        impl CallStatus {
            /// Returns the status as a fixed word, as written by the features `metrics` and
            /// `tracing`.
            ///
            /// ```
            /// use timeout_runtime::CallStatus;
            ///
            /// assert_eq!(CallStatus::TimedOut.as_str(), "timed_out");
            /// ```
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$status => $word,)*
                }
            }

            /// The status of a started call that ended for `cause`.
            fn of_started(cause: Cause) -> Self {
                match cause {
                    $($(Cause::$cause => Self::$status,)*)*
                }
            }
        }

        impl<T, E> Outcome<T, E> {
            /// The outcome without its value.
            #[must_use]
            pub fn status(&self) -> CallStatus {
                match self {
                    $(Self::$outcome(_) => CallStatus::$status,)*
                }
            }
        }
    };
}

endings!(outcome_and_status);

impl fmt::Display for CallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<T, E> Outcome<T, E> {
    pub(crate) fn of(result: Result<Result<T, E>, TimeoutError>) -> Self {
        match result {
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

    /// Whether the operation returned a value in time.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success(_))
    }

    /// The value, if the operation returned one in time.
    #[must_use]
    pub fn success(self) -> Option<T> {
        match self {
            Self::Success(value) => Some(value),
            _ => None,
        }
    }

    /// The operation's own error, if it returned one in time.
    #[must_use]
    pub fn failure(self) -> Option<E> {
        match self {
            Self::Failure(error) => Some(error),
            _ => None,
        }
    }

    /// Why the call has no result. `None` if the operation returned a value or an error in time.
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

    /// Converts each of the three kinds of outcome: a value, an error of the operation, or no
    /// result.
    pub fn fold<R>(
        self,
        success: impl FnOnce(T) -> R,
        failure: impl FnOnce(E) -> R,
        no_result: impl FnOnce(TimeoutError) -> R,
    ) -> R {
        match self {
            Self::Success(value) => success(value),
            Self::Failure(error) => failure(error),
            Self::TimedOut(error)
            | Self::DeadlineExceeded(error)
            | Self::Cancelled(error)
            | Self::NotStarted(error) => no_result(error),
        }
    }

    /// Converts the value with `change` and keeps every other outcome.
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

    /// Converts the operation's own error with `change` and keeps every other outcome.
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

    /// Returns the value, or an error: the operation's own, or the [`TimeoutError`] converted into
    /// it.
    ///
    /// # Errors
    ///
    /// Returns an error for every outcome except `Success`.
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
