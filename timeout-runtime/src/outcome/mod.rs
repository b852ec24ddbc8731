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
    (
        with_result {
            $($(#[$doc:meta])* $result:ident($value:ty), $status:ident, $event:ident, $word:literal,
                $text:literal;)*
        }
        without_result {
            $($(#[$why:meta])* $none:ident, $none_status:ident, $none_event:ident,
                [$($cause:ident),*], $none_word:literal, $none_text:literal;)*
        }
        only_in_events { $($event_row:tt)* }
    ) => {
        /// How a call ended: exactly one of six outcomes.
        ///
        /// It converts into a `Result` if its error type can hold a [`TimeoutError`].
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
            $($(#[$doc])* $result($value),)*
            $($(#[$why])* $none(TimeoutError),)*
        }

        /// How a call ended, without its value: for logs and tables. `Display` prints the name of
        /// the variant.
        ///
        /// ```
        /// use std::collections::HashMap;
        /// use std::time::Duration;
        /// use timeout_runtime::{CallStatus, Timeout};
        ///
        /// let parse = Timeout::new("parse", Duration::from_secs(60))?;
        /// let mut calls: HashMap<CallStatus, u32> = HashMap::new();
        /// for text in ["1", "x", "3"] {
        ///     let outcome = parse.outcome(move |_token| text.parse::<u32>());
        ///     *calls.entry(outcome.status()).or_default() += 1;
        /// }
        /// assert_eq!((calls[&CallStatus::Ok], calls[&CallStatus::Failed]), (2, 1));
        /// # Ok::<(), timeout_runtime::InvalidLimit>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum CallStatus {
            $($(#[$doc])* $status,)*
            $($(#[$why])* $none_status,)*
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
                    $(Self::$none_status => $none_word,)*
                }
            }

            /// Whether the called dependency is the reason: it failed, or the call reached its own
            /// limit. For circuit breakers.
            ///
            /// A cancelled caller and an operation that never ran say nothing about the dependency.
            /// Neither does a shared deadline by itself, because earlier calls may have used up its
            /// time. Add `DeadlineExceeded` if your deadlines are long enough for this call.
            ///
            /// ```
            /// use std::time::Duration;
            /// use timeout_runtime::{CallStatus, CancelToken, Timeout};
            ///
            /// let fetch = Timeout::new("fetch", Duration::from_secs(60))?;
            /// let refused = fetch.outcome(|_token| Err::<(), _>("connection refused"));
            /// assert!(refused.status().blames_dependency());
            ///
            /// let given_up = fetch.outcome(|token: CancelToken| {
            ///     token.cancel();
            ///     token.check()
            /// });
            /// assert_eq!(given_up.status(), CallStatus::UpstreamCancelled);
            /// assert!(!given_up.status().blames_dependency());
            /// # Ok::<(), timeout_runtime::InvalidLimit>(())
            /// ```
            #[must_use]
            pub fn blames_dependency(self) -> bool {
                matches!(self, Self::Failed | Self::TimedOut)
            }

            /// The text of the status in errors and events.
            pub(crate) fn text(self) -> &'static str {
                match self {
                    $(Self::$status => $text,)*
                    $(Self::$none_status => $none_text,)*
                }
            }

            /// The status of a call without a result. `None` as the cause means that the operation
            /// has not started.
            fn without_result(cause: Option<Cause>) -> Self {
                match cause {
                    $($(Some(Cause::$cause) => Self::$none_status,)*)*
                    None => Self::NotStarted,
                }
            }
        }

        impl<T, E> Outcome<T, E> {
            fn without_result(error: TimeoutError) -> Self {
                match error.cause_after_start() {
                    $($(Some(Cause::$cause) => Self::$none(error),)*)*
                    None => Self::NotStarted(error),
                }
            }

            /// The outcome without its value.
            #[must_use]
            pub fn status(&self) -> CallStatus {
                match self {
                    $(Self::$result(_) => CallStatus::$status,)*
                    $(Self::$none(_) => CallStatus::$none_status,)*
                }
            }

            /// Why the call has no result. `None` if the operation returned a value or an error in
            /// time.
            ///
            /// ```
            /// use std::time::Duration;
            /// use timeout_runtime::Timeout;
            ///
            /// let nap = Timeout::new("nap", Duration::from_millis(5))?;
            /// let outcome = nap.outcome(|token| token.sleep(Duration::from_secs(60)));
            /// let error = outcome.timeout_error().expect("the limit has passed");
            /// assert!(error.is_timed_out());
            ///
            /// let parse = Timeout::new("parse", Duration::from_secs(60))?;
            /// let outcome = parse.outcome(|_token| "x".parse::<u32>());
            /// assert!(outcome.timeout_error().is_none()); // the operation returned its own error
            /// # Ok::<(), timeout_runtime::InvalidLimit>(())
            /// ```
            #[must_use]
            pub fn timeout_error(&self) -> Option<&TimeoutError> {
                match self {
                    $(Self::$result(_) => None,)*
                    $(Self::$none(error) => Some(error),)*
                }
            }

            /// Converts each of the three kinds of outcome: a value, an error of the operation, or
            /// no result.
            ///
            /// ```
            /// use std::time::Duration;
            /// use timeout_runtime::Timeout;
            ///
            /// let parse = Timeout::new("parse", Duration::from_secs(60))?;
            /// let reply = parse.outcome(|_token| "x".parse::<u32>()).fold(
            ///     |number| format!("200 {number}"),
            ///     |error| format!("400 {error}"),
            ///     |error| format!("504 {error}"),
            /// );
            /// assert_eq!(reply, "400 invalid digit found in string");
            /// # Ok::<(), timeout_runtime::InvalidLimit>(())
            /// ```
            pub fn fold<R>(
                self,
                success: impl FnOnce(T) -> R,
                failure: impl FnOnce(E) -> R,
                no_result: impl FnOnce(TimeoutError) -> R,
            ) -> R {
                match self {
                    Self::Success(value) => success(value),
                    Self::Failure(error) => failure(error),
                    $(Self::$none(error))|* => no_result(error),
                }
            }
        }
    };
}

endings!(outcome_and_status);

impl fmt::Display for CallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl<T, E> Outcome<T, E> {
    pub(crate) fn of(result: Result<Result<T, E>, TimeoutError>) -> Self {
        match result {
            Ok(Ok(value)) => Self::Success(value),
            Ok(Err(error)) => Self::Failure(error),
            Err(error) => Self::without_result(error),
        }
    }

    /// The value, if the operation returned one in time.
    #[must_use]
    pub fn success(self) -> Option<T> {
        match self {
            Self::Success(value) => Some(value),
            _ => None,
        }
    }
}

/// Returns the value, or an error: the operation's own, or the [`TimeoutError`] converted into it.
impl<T, E: From<TimeoutError>> From<Outcome<T, E>> for Result<T, E> {
    fn from(outcome: Outcome<T, E>) -> Self {
        outcome.fold(Ok, Err, |error| Err(E::from(error)))
    }
}
