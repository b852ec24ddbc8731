//! The four methods that run an operation with a [`Timeout`].

use std::fmt;
use std::future::Future;

use crate::call::convert::{IntoOutcome, IntoResult};
use crate::outcome::{Outcome, TimeoutError};
use crate::token::CancelToken;

use super::Timeout;
use super::place::{AsyncPlace, Running, SyncPlace};

/// Runners.
impl<P, L: Clone> Timeout<P, L> {
    /// Runs a sync operation: by default on a worker thread, with the calling thread parked until
    /// the outcome.
    ///
    /// # Errors
    ///
    /// Returns the operation's own error, or, without a result in time, the converted
    /// [`TimeoutError`].
    ///
    /// # Panics
    ///
    /// If `op` panics while the caller waits, with that panic.
    pub fn call<T, E, F>(&self, op: F) -> Result<T, E>
    where
        P: SyncPlace<F, T, E, L>,
        F: FnOnce(CancelToken) -> Result<T, E>,
        E: From<TimeoutError> + fmt::Debug,
    {
        P::run(self.options(), self.late.clone(), op, IntoResult)
    }

    /// As [`call`](Self::call), with an [`Outcome`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{Outcome, Timeout};
    ///
    /// let parse = Timeout::new("parse", Duration::from_secs(60))?;
    /// let reply = match parse.outcome(|_token| "x".parse::<u32>()) {
    ///     Outcome::Success(number) => format!("200 {number}"),
    ///     Outcome::Failure(error) => format!("400 {error}"),
    ///     _ => "504".to_owned(),
    /// };
    /// assert_eq!(reply, "400 invalid digit found in string");
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `op` panics while the caller waits, with that panic.
    pub fn outcome<T, E, F>(&self, op: F) -> Outcome<T, E>
    where
        P: SyncPlace<F, T, E, L>,
        F: FnOnce(CancelToken) -> Result<T, E>,
        E: fmt::Debug,
    {
        P::run(self.options(), self.late.clone(), op, IntoOutcome)
    }

    /// Runs an async operation: by default polled in place. The clock starts at the first poll,
    /// which also calls `op`. At the limit the token is cancelled, the future is polled once more,
    /// and dropped. The call borrows nothing from the policy.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rows = [1, 2, 3];
    /// let sum = Timeout::new("sum", Duration::from_secs(60))?
    ///     .call_async(|_token| async { Ok::<u32, TimeoutError>(rows.iter().sum()) })
    ///     .await?;
    /// assert_eq!(sum, 6);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the call cancels the operation's token. An operation that is polled in place is
    /// dropped with its call, so the call is cancel safe if the operation is. On a worker and as a
    /// task, the operation is abandoned until it ends.
    ///
    /// # Errors
    ///
    /// Returns the operation's own error, or, without a result in time, the converted
    /// [`TimeoutError`].
    ///
    /// # Panics
    ///
    /// If the operation panics while the caller waits, with that panic.
    pub fn call_async<T, E, F, Fut>(
        &self,
        op: F,
    ) -> impl Future<Output = Result<T, E>> + use<P, L, T, E, F, Fut>
    where
        P: AsyncPlace<F, Fut, T, E, L>,
        F: FnOnce(CancelToken) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<TimeoutError> + fmt::Debug,
    {
        Running::<P, _, _, _, _, _>::new(self.options(), self.late.clone(), op, IntoResult)
    }

    /// As [`call_async`](Self::call_async), with an [`Outcome`]. Cancel safe under the same
    /// conditions.
    ///
    /// ```
    /// use std::future::pending;
    /// use std::time::Duration;
    /// use timeout_runtime::{Outcome, Timeout, TimeoutError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), timeout_runtime::InvalidLimit> {
    /// let ping = Timeout::new("ping", Duration::from_millis(5))?;
    /// let outcome = ping.outcome_async(|_token| pending::<Result<(), TimeoutError>>()).await;
    /// assert!(matches!(outcome, Outcome::TimedOut(_)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the operation panics while the caller waits, with that panic.
    pub fn outcome_async<T, E, F, Fut>(
        &self,
        op: F,
    ) -> impl Future<Output = Outcome<T, E>> + use<P, L, T, E, F, Fut>
    where
        P: AsyncPlace<F, Fut, T, E, L>,
        F: FnOnce(CancelToken) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: fmt::Debug,
    {
        Running::<P, _, _, _, _, _>::new(self.options(), self.late.clone(), op, IntoOutcome)
    }
}
