//! [`Timeout`]: the policy behind the attribute, usable without it.

mod with_on_late;
pub(crate) mod within;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::call::convert::{IntoOutcome, IntoResult, IntoReturn};
use crate::call::inline;
use crate::call::options::CallOptions;
use crate::call::polled::InlineCall;
use crate::call::report::Classify;
#[cfg(feature = "tokio")]
use crate::call::task;
use crate::call::worker;
use crate::error::{InvalidLimit, TimeoutError};
use crate::event::Event;
use crate::event::clock::{OwnClock, TimestampClock};
use crate::event::listener::Own;
use crate::outcome::Outcome;
use crate::policy::{Policy, PolicyRef};
use crate::returns::of_result;
use crate::token::CancelToken;

pub use with_on_late::WithOnLate;

/// A limit with a name, and what is to happen when it passes.
///
/// It runs operations as an annotated function would, in five ways; each gives a `Result` (`call…`) or an [`Outcome`]
/// (`outcome…`).
///
/// | runner | the operation runs | must be |
/// |---|---|---|
/// | [`call`](Self::call) | on a worker thread, the caller is parked | `Send + 'static` |
/// | [`call_inline`](Self::call_inline) | on the caller's thread | |
/// | [`call_async`](Self::call_async) | polled in place | |
/// | `call_task` | as a task of the Tokio runtime around the call | `Send + 'static` |
/// | [`call_async_on_worker`](Self::call_async_on_worker) | built and polled on a worker thread | its maker `Send + 'static` |
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::{Timeout, TimeoutError};
///
/// let inventory = Timeout::new("inventory", Duration::from_millis(20))?;
/// let stock: Result<u32, TimeoutError> = inventory.call(|token| {
///     loop {
///         token.check()?; // the signal
///         std::thread::yield_now();
///     }
/// });
/// assert!(stock.unwrap_err().is_timed_out());
/// # Ok::<(), timeout_runtime::InvalidLimit>(())
/// ```
#[derive(Clone)]
pub struct Timeout {
    policy: Arc<Policy>,
    limit: Duration,
    grace: Duration,
    max_abandoned: Option<usize>,
}

impl Timeout {
    /// A limit of `limit` for calls named `name`.
    ///
    /// # Errors
    ///
    /// If `limit` is zero.
    pub fn new(name: &'static str, limit: Duration) -> Result<Self, InvalidLimit> {
        Self {
            policy: Arc::new(Policy::new(name)),
            limit,
            grace: Duration::ZERO,
            max_abandoned: None,
        }
        .with_limit(limit)
    }

    /// The same with another limit. [`Duration::MAX`] means none.
    ///
    /// # Errors
    ///
    /// If `limit` is zero.
    pub fn with_limit(mut self, limit: Duration) -> Result<Self, InvalidLimit> {
        if limit.is_zero() {
            return Err(InvalidLimit { name: self.name() });
        }
        self.limit = limit;
        Ok(self)
    }

    /// Whether the token fires at the limit, by default yes. With `false` the operation is not told and runs on, abandoned.
    #[must_use]
    pub fn cancel_on_timeout(self, cancel: bool) -> Self {
        self.with_policy(|policy| policy.cancel = cancel)
    }

    /// How long past the signal an operation may still deliver its answer. The caller waits for limit and grace at most. Without
    /// meaning where the limit gives no signal.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How many abandoned operations of this name are too many to start another; by default half the worker cap.
    #[must_use]
    pub fn with_max_abandoned(mut self, most: usize) -> Self {
        self.max_abandoned = Some(most);
        self
    }

    /// A listener for the events of this policy's calls, besides the registered ones. It is told first.
    #[must_use]
    pub fn with_listener(self, listener: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        let own = Own::new(Arc::new(listener));
        self.with_policy(|policy| policy.listener = Some(own))
    }

    /// The clock for the timestamps of events. It has no say in the limit.
    #[must_use]
    pub fn with_clock(self, clock: impl TimestampClock + 'static) -> Self {
        self.with_policy(|policy| policy.clock = Some(OwnClock::new(Arc::new(clock))))
    }

    /// The same for one call, with a function that gets the answer if callers no longer get it, to give back what is in it. It is called as that of the
    /// attribute's `on_late`.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// struct Connection;
    ///
    /// let connect = Timeout::new("connect", Duration::from_secs(5))?;
    /// let pool = Arc::new(Mutex::new(vec![Connection]));
    /// let back = Arc::clone(&pool);
    /// let connection: Result<Option<Connection>, TimeoutError> = connect
    ///     .on_late(move |late| back.lock().unwrap().extend(late.ok().flatten()))
    ///     .call(move |_| Ok(pool.lock().unwrap().pop()));
    /// assert!(connection.unwrap().is_some());
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    pub fn on_late<T, E, L>(&self, function: L) -> WithOnLate<'_, T, E, L>
    where
        L: FnOnce(Result<T, E>),
    {
        WithOnLate::new(self, function)
    }

    fn with_policy(mut self, edit: impl FnOnce(&mut Policy)) -> Self {
        edit(Arc::make_mut(&mut self.policy));
        self
    }

    /// The name of the calls.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.policy.name
    }

    /// The limit.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    fn options(&self) -> CallOptions {
        CallOptions {
            max_abandoned: self.max_abandoned,
            ..CallOptions::new(PolicyRef::Shared(Arc::clone(&self.policy)))
        }
        .limit(self.limit)
        .grace(self.grace)
    }

    fn run_inline<R, F, Fut, M>(
        &self,
        op: F,
        classify: Classify<R>,
        convert: M,
    ) -> impl Future<Output = M::Output> + use<R, F, Fut, M>
    where
        F: FnOnce(CancelToken) -> Fut,
        Fut: Future<Output = R>,
        M: IntoReturn<R>,
    {
        let options = self.options();
        async move {
            let mut call = InlineCall::new(options);
            let token = call.param();
            // Called inside the call, and only if that starts.
            let op = pin!(async move { op(token).await });
            call.run(op, classify, convert).await
        }
    }

    /// Runs `op` on a worker thread; the calling thread is parked until the verdict.
    ///
    /// # Errors
    ///
    /// The operation's own, and a [`TimeoutError`] converted where there is no answer.
    ///
    /// # Panics
    ///
    /// If `op` panics while the caller waits, with that panic.
    pub fn call<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: FnOnce(CancelToken) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<TimeoutError> + fmt::Debug + Send + 'static,
    {
        IntoResult.into_return(worker::sync_worker(self.options(), of_result, op))
    }

    /// As [`call`](Self::call), with every ending told apart.
    ///
    /// # Panics
    ///
    /// If `op` panics while the caller waits, with that panic.
    pub fn outcome<T, E, F>(&self, op: F) -> Outcome<T, E>
    where
        F: FnOnce(CancelToken) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: fmt::Debug + Send + 'static,
    {
        Outcome::of(worker::sync_worker(self.options(), of_result, op))
    }

    /// Runs `op` on the calling thread. It may borrow, and the caller is free only when it returns.
    ///
    /// # Errors
    ///
    /// The operation's own, and a [`TimeoutError`] converted where its answer came too late.
    ///
    /// # Panics
    ///
    /// If `op` panics, with that panic.
    pub fn call_inline<T, E, F>(&self, op: F) -> Result<T, E>
    where
        F: FnOnce(CancelToken) -> Result<T, E>,
        E: From<TimeoutError> + fmt::Debug,
    {
        IntoResult.into_return(inline::sync_inline(self.options(), of_result, op))
    }

    /// As [`call_inline`](Self::call_inline), with every ending told apart.
    ///
    /// # Panics
    ///
    /// If `op` panics, with that panic.
    pub fn outcome_inline<T, E, F>(&self, op: F) -> Outcome<T, E>
    where
        F: FnOnce(CancelToken) -> Result<T, E>,
        E: fmt::Debug,
    {
        Outcome::of(inline::sync_inline(self.options(), of_result, op))
    }

    /// Polls the future of `op` in place. At the limit the token fires, the future is polled once more, and dropped. The clock
    /// starts at the first poll.
    ///
    /// Cancel safe if the operation is; dropping the call fires the token.
    ///
    /// # Errors
    ///
    /// The operation's own, and a [`TimeoutError`] converted where there is no answer.
    ///
    /// # Panics
    ///
    /// If the operation panics, with that panic.
    pub fn call_async<T, E, F, Fut>(
        &self,
        op: F,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<TimeoutError> + fmt::Debug,
    {
        self.run_inline(op, of_result, IntoResult)
    }

    /// As [`call_async`](Self::call_async), with every ending told apart.
    ///
    /// # Panics
    ///
    /// If the operation panics, with that panic.
    pub fn outcome_async<T, E, F, Fut>(
        &self,
        op: F,
    ) -> impl Future<Output = Outcome<T, E>> + use<T, E, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: fmt::Debug,
    {
        self.run_inline(op, of_result, IntoOutcome)
    }

    /// Spawns the future of `op` on the Tokio runtime around the call, where it may outlive the caller's wait.
    ///
    /// Dropping the call fires the token and leaves the operation abandoned until it ends.
    ///
    /// # Errors
    ///
    /// The operation's own, and a [`TimeoutError`] converted where there is no answer; outside a Tokio runtime at once.
    ///
    /// # Panics
    ///
    /// If the operation panics while the caller waits, with that panic.
    #[cfg(feature = "tokio")]
    pub fn call_task<T, E, F, Fut>(
        &self,
        op: F,
    ) -> impl Future<Output = Result<T, E>> + Send + use<T, E, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<TimeoutError> + fmt::Debug + Send + 'static,
    {
        task::async_task(self.options(), of_result, op, IntoResult)
    }

    /// As [`call_task`](Self::call_task), with every ending told apart.
    ///
    /// # Panics
    ///
    /// If the operation panics while the caller waits, with that panic.
    #[cfg(feature = "tokio")]
    pub fn outcome_task<T, E, F, Fut>(
        &self,
        op: F,
    ) -> impl Future<Output = Outcome<T, E>> + Send + use<T, E, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: fmt::Debug + Send + 'static,
    {
        task::async_task(self.options(), of_result, op, IntoOutcome)
    }

    /// Builds and polls the future of `op` on a worker thread: it need not be `Send`, and may block.
    ///
    /// Dropping the call fires the token and leaves the operation abandoned until it ends.
    ///
    /// # Errors
    ///
    /// The operation's own, and a [`TimeoutError`] converted where there is no answer.
    ///
    /// # Panics
    ///
    /// If the operation panics while the caller waits, with that panic.
    pub fn call_async_on_worker<T, E, F, Fut>(
        &self,
        op: F,
    ) -> impl Future<Output = Result<T, E>> + Send + use<T, E, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>>,
        T: Send + 'static,
        E: From<TimeoutError> + fmt::Debug + Send + 'static,
    {
        worker::async_worker(self.options(), of_result, op, IntoResult)
    }

    /// As [`call_async_on_worker`](Self::call_async_on_worker), with every ending told apart.
    ///
    /// # Panics
    ///
    /// If the operation panics while the caller waits, with that panic.
    pub fn outcome_async_on_worker<T, E, F, Fut>(
        &self,
        op: F,
    ) -> impl Future<Output = Outcome<T, E>> + Send + use<T, E, F, Fut>
    where
        F: FnOnce(CancelToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>>,
        T: Send + 'static,
        E: fmt::Debug + Send + 'static,
    {
        worker::async_worker(self.options(), of_result, op, IntoOutcome)
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("name", &self.policy.name)
            .field("limit", &self.limit)
            .field("cancel", &self.policy.cancel)
            .field("grace", &self.grace)
            .field("max_abandoned", &self.max_abandoned)
            .finish_non_exhaustive()
    }
}
