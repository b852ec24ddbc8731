//! [`TimeoutError`]: why a call has no result.

use std::error::Error;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use super::CallStatus;
use crate::one_line::OneLine;

/// The reason given to `cancel_with`, shared by all errors of that cancellation.
///
/// It derefs to the error, but it does not implement `Error` itself. So `TimeoutError::source`
/// returns the reason with its own type.
#[derive(Clone)]
pub(crate) struct Reason(Arc<dyn Error + Send + Sync>);

impl Reason {
    pub(crate) fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into().into())
    }
}

impl Deref for Reason {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// Two reasons are equal if they come from one cancellation.
impl PartialEq for Reason {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Reason {}

// A reason is only ever read.
impl UnwindSafe for Reason {}
impl RefUnwindSafe for Reason {}

/// Why a call has no result.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::{Cause, TimeoutError, within_blocking};
///
/// /// The HTTP status for a request without a result.
/// fn http_status(error: &TimeoutError) -> u16 {
///     match error.cause() {
///         Cause::TimedOut | Cause::DeadlineExceeded => 504,
///         _ => 503,
///     }
/// }
///
/// let error = within_blocking(Duration::ZERO, |_token| ()).unwrap_err();
/// assert_eq!(http_status(&error), 504);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The call's own limit passed first.
    TimedOut,
    /// An inherited or shared deadline passed first.
    DeadlineExceeded,
    /// A token was cancelled first, or the caller went away.
    Cancelled,
    /// No worker was free to run the operation.
    NoWorker,
    /// The operation runs as a task, and the call was outside a Tokio runtime.
    NoRuntime,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "its limit had passed",
            Self::DeadlineExceeded => "its caller's deadline had passed",
            Self::Cancelled => "its caller was cancelled",
            Self::NoWorker => "there was no worker",
            Self::NoRuntime => "there was no Tokio runtime",
        })
    }
}

impl Cause {
    /// The cause in a nested call: the limit of the enclosing call is a deadline there.
    pub(crate) fn entering(self) -> Self {
        match self {
            Self::TimedOut => Self::DeadlineExceeded,
            other => other,
        }
    }
}

/// The error of a call without a result: its name, the cause and the elapsed time.
///
/// [`source`](Error::source) returns the reason given to
/// [`CancelToken::cancel_with`](crate::CancelToken::cancel_with). Errors are equal if their methods
/// return equal values and their reasons come from one cancellation.
///
/// Converts into [`io::Error`]: of kind [`TimedOut`](io::ErrorKind::TimedOut) if a limit or a
/// deadline passed, and of kind [`Other`](io::ErrorKind::Other) otherwise.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::{Timeout, TimeoutError};
///
/// let nap = Timeout::new("nap", Duration::from_millis(10))?;
/// let error = nap
///     .call(|token| token.sleep(Duration::from_secs(60)))
///     .unwrap_err();
/// assert_eq!(error.name(), "nap");
/// assert!(error.is_timed_out());
/// assert_eq!(error.limit(), Some(Duration::from_millis(10)));
/// assert!(error.elapsed() >= Duration::from_millis(10));
/// # Ok::<(), timeout_runtime::InvalidLimit>(())
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub struct TimeoutError {
    name: &'static str,
    limit: Option<Duration>,
    #[source]
    reason: Option<Reason>,
    elapsed_nanos: u64,
    cause: Cause,
    started: bool,
}

impl TimeoutError {
    pub(crate) fn new(
        name: &'static str,
        cause: Cause,
        limit: Option<Duration>,
        elapsed: Duration,
        started: bool,
        reason: Option<Reason>,
    ) -> Self {
        Self {
            name,
            limit,
            reason,
            elapsed_nanos: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            cause,
            started,
        }
    }

    /// The name of the call, as given to the attribute or to [`Timeout::new`](crate::Timeout::new).
    /// A token without a call has the name `token`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Why there is no result.
    ///
    /// ```
    /// use timeout_runtime::{CancelToken, Cause};
    ///
    /// let token = CancelToken::new();
    /// token.cancel();
    /// let error = token.check().unwrap_err();
    /// assert_eq!(error.cause(), Cause::Cancelled);
    /// assert_eq!(error.cause().to_string(), "its caller was cancelled");
    /// ```
    #[must_use]
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// The call's own limit, if it had one.
    #[must_use]
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// The time from the start of the call to its end. Zero for a token without a call. Saturates
    /// at about 584 years.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_nanos)
    }

    /// Whether the call's own limit was the cause.
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        self.cause == Cause::TimedOut
    }

    /// Whether an inherited or shared deadline was the cause.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{CallContext, Deadline, within_blocking};
    ///
    /// let request = Deadline::after(Duration::ZERO);
    /// let error = CallContext::detached()
    ///     .with_deadline(request)
    ///     .run(|| within_blocking(Duration::from_secs(60), |_token| ()))
    ///     .unwrap_err();
    /// assert!(error.is_deadline_exceeded() && !error.is_timed_out());
    /// ```
    #[must_use]
    pub fn is_deadline_exceeded(&self) -> bool {
        self.cause == Cause::DeadlineExceeded
    }

    /// Whether a cancellation was the cause.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{CancelToken, TimeoutError};
    ///
    /// /// A shutdown between two rounds is not a failure.
    /// fn pause(shutdown: &CancelToken) -> Result<(), TimeoutError> {
    ///     match shutdown.sleep(Duration::from_secs(60)) {
    ///         Err(error) if error.is_cancelled() => Ok(()),
    ///         other => other,
    ///     }
    /// }
    ///
    /// let shutdown = CancelToken::new();
    /// shutdown.cancel();
    /// assert!(pause(&shutdown).is_ok());
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cause == Cause::Cancelled
    }

    /// The status of a call that ended with this error: [`NotStarted`](CallStatus::NotStarted) if
    /// the operation has not run, for any cause.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{CallStatus, within_blocking};
    ///
    /// let error = within_blocking(Duration::ZERO, |_token| ()).unwrap_err();
    /// assert!(error.is_timed_out());
    /// assert_eq!(error.status(), CallStatus::NotStarted); // so a retry repeats nothing
    /// ```
    #[must_use]
    pub fn status(&self) -> CallStatus {
        CallStatus::without_result(self.cause_after_start())
    }

    /// The cause, or `None` if the operation has not started.
    pub(super) fn cause_after_start(&self) -> Option<Cause> {
        self.started.then_some(self.cause)
    }
}

/// Prints a duration with about three digits of its largest unit.
pub(crate) struct Rounded(pub(crate) Duration);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(duration) = *self;
        let digits = match duration.as_nanos() {
            1_000_000..100_000_000 => 1,
            1_000_000_000.. => 2,
            _ => 0,
        };
        if duration.subsec_nanos() == 0 && duration.as_secs() > 0 {
            write!(f, "{}s", duration.as_secs())
        } else {
            write!(f, "{duration:.digits$?}")
        }
    }
}

impl fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cause, elapsed) = (self.cause, Rounded(self.elapsed()));
        let status = self.status();
        write!(f, "`{}` {}", OneLine(self.name), status.text())?;
        match (status, cause) {
            (CallStatus::NotStarted, Cause::TimedOut) => {
                write!(f, ": its limit passed after {elapsed}")?;
            }
            (CallStatus::NotStarted, Cause::DeadlineExceeded | Cause::Cancelled) => {
                write!(
                    f,
                    ": {cause}; cleanup that must still run uses `inherit = false` or \
                     `CallContext::detached()`"
                )?;
            }
            (CallStatus::NotStarted, Cause::NoWorker) => {
                write!(
                    f,
                    ": no worker was free within {elapsed}; raise the worker cap or \
                     `max_abandoned`, or let operations observe their tokens"
                )?;
            }
            (CallStatus::NotStarted, Cause::NoRuntime) => {
                f.write_str(": `run = \"task\"` needs a Tokio runtime")?;
            }
            _ => write!(f, " after {elapsed}")?,
        }
        match self.limit {
            Some(limit) if cause == Cause::TimedOut => {
                write!(f, " (limit {limit:?})")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for TimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutError")
            .field("name", &self.name)
            .field("cause", &self.cause)
            .field("limit", &self.limit)
            .field("elapsed", &self.elapsed())
            .field("started", &self.started)
            .field("reason", &self.reason.as_deref().map(OneLine))
            .finish_non_exhaustive()
    }
}

impl From<TimeoutError> for io::Error {
    fn from(error: TimeoutError) -> Self {
        let kind = match error.cause {
            Cause::TimedOut | Cause::DeadlineExceeded => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// The error of a limit of zero. `Display` prints the name of the call.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::Timeout;
///
/// let error = Timeout::new("inventory", Duration::ZERO).unwrap_err();
/// assert_eq!(error.to_string(), "the limit of `inventory` is zero; it must be longer");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the limit of `{}` is zero; it must be longer", OneLine(.name))]
pub struct InvalidLimit {
    pub(crate) name: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This assertion was a constant of the library, where it broke builds with randomized layouts.
    #[test]
    fn an_error_fits_in_a_cache_line() {
        assert!(size_of::<TimeoutError>() <= 64);
    }
}
