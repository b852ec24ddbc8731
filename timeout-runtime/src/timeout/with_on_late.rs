//! [`WithOnLate`]: one call of a [`Timeout`] whose answer goes somewhere if it comes too late.

use std::fmt;
use std::future::Future;

use crate::call::convert::{IntoOutcome, IntoResult, IntoReturn};
use crate::call::inline;
use crate::call::late_value::{LateGuard, OnLate, disarm, guard_operation, guard_returned_future};
#[cfg(feature = "tokio")]
use crate::call::task;
use crate::call::worker;
use crate::error::TimeoutError;
use crate::outcome::Outcome;
use crate::returns::{Ending, of_result};
use crate::token::CancelToken;

use super::Timeout;

/// One call of a [`Timeout`], with a function that gets the answer if callers no longer get it; made by [`Timeout::on_late`].
///
/// The runners are those of `Timeout`.
#[must_use = "nothing has been called yet"]
pub struct WithOnLate<'t, T, E, L> {
    timeout: &'t Timeout,
    on_late: OnLate<Result<T, E>, L>,
}

fn means<T, E: fmt::Debug, L>(guard: &LateGuard<Result<T, E>, L>) -> Ending<'_> {
    of_result(guard.value())
}

impl<'t, T, E, L> WithOnLate<'t, T, E, L> {
    pub(super) fn new(timeout: &'t Timeout, function: L) -> Self
    where
        L: FnOnce(Result<T, E>),
    {
        Self {
            timeout,
            on_late: OnLate::new(function),
        }
    }

    /// [`Timeout::call`], with the function.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn call<F>(self, op: F) -> Result<T, E>
    where
        F: FnOnce(CancelToken) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<TimeoutError> + fmt::Debug + Send + 'static,
        L: Send + 'static,
    {
        let op = guard_operation(self.on_late, op);
        disarm(IntoResult).into_return(worker::sync_worker(self.timeout.options(), means, op))
    }

    /// [`Timeout::outcome`], with the function.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn outcome<F>(self, op: F) -> Outcome<T, E>
    where
        F: FnOnce(CancelToken) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: fmt::Debug + Send + 'static,
        L: Send + 'static,
    {
        let op = guard_operation(self.on_late, op);
        disarm(IntoOutcome).into_return(worker::sync_worker(self.timeout.options(), means, op))
    }

    /// [`Timeout::call_inline`], with the function.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn call_inline<F>(self, op: F) -> Result<T, E>
    where
        F: FnOnce(CancelToken) -> Result<T, E>,
        E: From<TimeoutError> + fmt::Debug,
    {
        let op = guard_operation(self.on_late, op);
        disarm(IntoResult).into_return(inline::sync_inline(self.timeout.options(), means, op))
    }

    /// [`Timeout::outcome_inline`], with the function.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn outcome_inline<F>(self, op: F) -> Outcome<T, E>
    where
        F: FnOnce(CancelToken) -> Result<T, E>,
        E: fmt::Debug,
    {
        let op = guard_operation(self.on_late, op);
        disarm(IntoOutcome).into_return(inline::sync_inline(self.timeout.options(), means, op))
    }

    /// [`Timeout::call_async`], with the function.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn call_async<F, Fut>(
        self,
        op: F,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, L, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<TimeoutError> + fmt::Debug,
    {
        let op = guard_returned_future(self.on_late, op);
        self.timeout.run_inline(op, means, disarm(IntoResult))
    }

    /// [`Timeout::outcome_async`], with the function.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn outcome_async<F, Fut>(
        self,
        op: F,
    ) -> impl Future<Output = Outcome<T, E>> + use<T, E, L, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: fmt::Debug,
    {
        let op = guard_returned_future(self.on_late, op);
        self.timeout.run_inline(op, means, disarm(IntoOutcome))
    }

    /// `Timeout::call_task`, with the function.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// As there.
    #[cfg(feature = "tokio")]
    pub fn call_task<F, Fut>(
        self,
        op: F,
    ) -> impl Future<Output = Result<T, E>> + Send + use<T, E, L, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<TimeoutError> + fmt::Debug + Send + 'static,
        L: Send + 'static,
    {
        let op = guard_returned_future(self.on_late, op);
        task::async_task(self.timeout.options(), means, op, disarm(IntoResult))
    }

    /// `Timeout::outcome_task`, with the function.
    ///
    /// # Panics
    ///
    /// As there.
    #[cfg(feature = "tokio")]
    pub fn outcome_task<F, Fut>(
        self,
        op: F,
    ) -> impl Future<Output = Outcome<T, E>> + Send + use<T, E, L, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: fmt::Debug + Send + 'static,
        L: Send + 'static,
    {
        let op = guard_returned_future(self.on_late, op);
        task::async_task(self.timeout.options(), means, op, disarm(IntoOutcome))
    }

    /// [`Timeout::call_async_on_worker`], with the function.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn call_async_on_worker<F, Fut>(
        self,
        op: F,
    ) -> impl Future<Output = Result<T, E>> + Send + use<T, E, L, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + 'static,
        T: Send + 'static,
        E: From<TimeoutError> + fmt::Debug + Send + 'static,
        L: Send + 'static,
    {
        let op = guard_returned_future(self.on_late, op);
        worker::async_worker(self.timeout.options(), means, op, disarm(IntoResult))
    }

    /// [`Timeout::outcome_async_on_worker`], with the function.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn outcome_async_on_worker<F, Fut>(
        self,
        op: F,
    ) -> impl Future<Output = Outcome<T, E>> + Send + use<T, E, L, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + 'static,
        T: Send + 'static,
        E: fmt::Debug + Send + 'static,
        L: Send + 'static,
    {
        let op = guard_returned_future(self.on_late, op);
        worker::async_worker(self.timeout.options(), means, op, disarm(IntoOutcome))
    }
}

impl<T, E, L> fmt::Debug for WithOnLate<'_, T, E, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithOnLate")
            .field("timeout", self.timeout)
            .finish_non_exhaustive()
    }
}
