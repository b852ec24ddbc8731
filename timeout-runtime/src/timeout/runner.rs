//! [`Runner`]: one call of a [`Timeout`], with its place and its function for late results.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use crate::call::convert::{IntoOutcome, IntoResult};
use crate::outcome::Outcome;
use crate::outcome::TimeoutError;
use crate::token::CancelToken;

use super::Timeout;
use super::place::{AsyncPlace, Running, SyncPlace};

/// One call of a [`Timeout`] at the place `P`; made by [`Timeout::inline`],
/// [`Timeout::on_worker`], `Timeout::as_task` and [`Timeout::on_late`].
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::{Timeout, TimeoutError};
///
/// let count = Timeout::new("count", Duration::from_secs(5))?;
/// let words = String::from("one two three");
/// // Inline, an operation may borrow.
/// let counted = count.inline().call(|_token| Ok::<_, TimeoutError>(words.split(' ').count()));
/// assert_eq!(counted, Ok(3));
/// # Ok::<(), timeout_runtime::InvalidLimit>(())
/// ```
#[must_use = "a runner does nothing until its operation is given"]
pub struct Runner<'t, P, L = ()> {
    timeout: &'t Timeout,
    late: L,
    place: PhantomData<P>,
}

impl<'t, P> Runner<'t, P> {
    pub(super) fn new(timeout: &'t Timeout) -> Self {
        Self {
            timeout,
            late: (),
            place: PhantomData,
        }
    }

    /// Gives a late result to `function`: a result that the caller does not get, because the call
    /// has ended before. Without it, a late result is dropped.
    ///
    /// It runs at most once, on the thread where the operation ends, before the late event. A panic
    /// of `function` changes no outcome.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// let scan = Timeout::new("scan", Duration::from_millis(10))?;
    /// let mut late = None;
    /// let outcome = scan.inline().on_late(|result| late = Some(result)).outcome(|token| {
    ///     while !token.is_cancelled() {}
    ///     Ok::<u32, TimeoutError>(7)
    /// });
    /// assert!(outcome.timeout_error().is_some());
    /// assert_eq!(late, Some(Ok(7)));
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    pub fn on_late<T, E, G>(self, function: G) -> Runner<'t, P, G>
    where
        G: FnOnce(Result<T, E>),
    {
        Runner {
            timeout: self.timeout,
            late: function,
            place: PhantomData,
        }
    }
}

impl<P, L> Runner<'_, P, L> {
    /// Runs a sync operation: [`Timeout::call`], at this place.
    ///
    /// # Errors
    ///
    /// The operation's own error, or the [`TimeoutError`] converted if there is no result in time.
    ///
    /// # Panics
    ///
    /// If `op` panics while the caller waits, with that panic.
    pub fn call<T, E, F>(self, op: F) -> Result<T, E>
    where
        P: SyncPlace<F, T, E, L>,
        F: FnOnce(CancelToken) -> Result<T, E>,
        E: From<TimeoutError> + fmt::Debug,
    {
        P::run(self.timeout.options(), self.late, op, IntoResult)
    }

    /// Runs a sync operation: [`Timeout::outcome`], at this place.
    ///
    /// # Panics
    ///
    /// If `op` panics while the caller waits, with that panic.
    pub fn outcome<T, E, F>(self, op: F) -> Outcome<T, E>
    where
        P: SyncPlace<F, T, E, L>,
        F: FnOnce(CancelToken) -> Result<T, E>,
        E: fmt::Debug,
    {
        P::run(self.timeout.options(), self.late, op, IntoOutcome)
    }

    /// Runs an async operation: [`Timeout::call_async`], at this place. The future borrows nothing
    /// from the policy.
    ///
    /// On a worker and as a task, the operation may outlive its call: dropping the future cancels
    /// the operation's token and abandons the operation until it ends.
    ///
    /// # Errors
    ///
    /// The operation's own error, or the [`TimeoutError`] converted if there is no result in time.
    ///
    /// # Panics
    ///
    /// If the operation panics while the caller waits, with that panic.
    pub fn call_async<T, E, F, Fut>(
        self,
        op: F,
    ) -> impl Future<Output = Result<T, E>> + use<P, L, T, E, F, Fut>
    where
        P: AsyncPlace<F, Fut, T, E, L>,
        F: FnOnce(CancelToken) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<TimeoutError> + fmt::Debug,
    {
        Running::<P, _, _, _, _, _>::new(self.timeout.options(), self.late, op, IntoResult)
    }

    /// Runs an async operation: [`Timeout::outcome_async`], at this place. As
    /// [`call_async`](Self::call_async) in all else.
    ///
    /// # Panics
    ///
    /// If the operation panics while the caller waits, with that panic.
    pub fn outcome_async<T, E, F, Fut>(
        self,
        op: F,
    ) -> impl Future<Output = Outcome<T, E>> + use<P, L, T, E, F, Fut>
    where
        P: AsyncPlace<F, Fut, T, E, L>,
        F: FnOnce(CancelToken) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: fmt::Debug,
    {
        Running::<P, _, _, _, _, _>::new(self.timeout.options(), self.late, op, IntoOutcome)
    }
}

impl<P, L> fmt::Debug for Runner<'_, P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("timeout", self.timeout)
            .finish_non_exhaustive()
    }
}
