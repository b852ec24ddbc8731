//! [`Timeout`]: the policy behind the attribute, usable without it.

pub mod place;
mod runner;
pub(crate) mod within;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::call::options::CallOptions;
use crate::event::Event;
use crate::event::clock::OwnClock;
use crate::event::listener::Own;
use crate::outcome::Outcome;
use crate::outcome::{InvalidLimit, TimeoutError};
use crate::terms::{Policy, PolicyRef};
use crate::token::CancelToken;

#[cfg(feature = "tokio")]
use place::AsTask;
use place::{ByDefault, Inline, OnWorker};

pub use runner::Runner;

/// A named limit and the policy around it, as a value: what the attribute sets, for operations that
/// are closures.
///
/// Four methods run an operation. `call` and `call_async` give a `Result`; `outcome` and
/// `outcome_async` give an [`Outcome`], which tells all endings apart. Each operation takes its
/// [`CancelToken`]. A selector in front of them chooses the place:
///
/// | place | sync: `call`, `outcome` | async: `call_async`, `outcome_async` |
/// |---|---|---|
/// | none | on a worker | polled in place |
/// | [`inline()`](Self::inline) | on the caller's thread; may borrow | polled in place; may borrow |
/// | [`on_worker()`](Self::on_worker) | on a worker: `Send + 'static` | on a worker: the closure is `Send + 'static`, its future need not be `Send` |
/// | `as_task()` | | a Tokio task: closure and future are `Send + 'static` |
///
/// [`on_late`](Self::on_late) adds a function for results that come too late.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::{Timeout, TimeoutError};
///
/// let inventory = Timeout::new("inventory", Duration::from_millis(20))?;
/// let stock: Result<u32, TimeoutError> = inventory.call(|token| {
///     loop {
///         token.check()?; // an error after 20 ms
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
    /// Makes a policy for calls named `name`, with `limit` for each. [`Duration::MAX`] means no
    /// limit.
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

    /// Changes the limit. [`Duration::MAX`] means no limit.
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

    /// Whether the limit cancels the operation's token; by default, it does. With `false` the
    /// operation keeps running, abandoned, and its nested calls are not bound by the limit.
    #[must_use]
    pub fn cancel_on_timeout(self, cancel: bool) -> Self {
        self.with_policy(|policy| policy.cancel = cancel)
    }

    /// How long after the cancellation a result still counts; by default, not at all. The caller
    /// waits at most limit + grace. Without effect if the limit does not cancel the token.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Refuses to start an operation while `most` operations of this name are abandoned; by default
    /// half of the worker cap.
    #[must_use]
    pub fn with_max_abandoned(mut self, most: usize) -> Self {
        self.max_abandoned = Some(most);
        self
    }

    /// Adds a listener for the events of this policy's calls. It receives each event before the
    /// listeners of the process. A second listener replaces the first.
    #[must_use]
    pub fn with_listener(self, listener: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        let own = Own::new(Arc::new(listener));
        self.with_policy(|policy| policy.listener = Some(own))
    }

    /// Sets the clock for the timestamps of events. The limit does not depend on it.
    ///
    /// If `clock` panics, the event gets the system time. So do the events of calls that `clock`
    /// makes itself.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use timeout_runtime::Timeout;
    ///
    /// let stock = Timeout::new("stock", Duration::from_secs(5))?;
    /// let stock = stock.with_clock(|| SystemTime::UNIX_EPOCH);
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    #[must_use]
    pub fn with_clock(self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.with_policy(|policy| policy.clock = Some(OwnClock::new(Arc::new(clock))))
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

    /// The limit of each call.
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

    /// Runs the operation of the next call where its caller is: a sync one on the caller's thread,
    /// an async one polled in place. It may borrow.
    ///
    /// The caller gets its error only when a sync operation returns, or when a poll does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// let sum = Timeout::new("sum", Duration::from_secs(5))?;
    /// let rows = vec![1, 2, 3];
    /// let total = sum.inline().call(|_token| Ok::<u32, TimeoutError>(rows.iter().sum()));
    /// assert_eq!(total, Ok(6));
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    pub fn inline(&self) -> Runner<'_, Inline> {
        Runner::new(self)
    }

    /// Runs the operation of the next call on a worker thread. An async one is built and polled
    /// there: its future need not be `Send`, and may block.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let parse = Timeout::new("parse", Duration::from_secs(5))?;
    /// let parsed = parse
    ///     .on_worker()
    ///     .call_async(|_token| async {
    ///         let shared = Rc::new(7);
    ///         std::future::ready(()).await;
    ///         Ok::<u32, TimeoutError>(*shared)
    ///     })
    ///     .await?;
    /// assert_eq!(parsed, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_worker(&self) -> Runner<'_, OnWorker> {
        Runner::new(self)
    }

    /// Spawns the operation of the next call on the Tokio runtime around the call. Async operations
    /// only. Outside a runtime the call is not started, with
    /// [`Cause::NoRuntime`](crate::Cause::NoRuntime).
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ping = Timeout::new("ping", Duration::from_secs(5))?;
    /// let pong = ping.as_task().call_async(|_token| async { Ok::<u32, TimeoutError>(7) }).await?;
    /// assert_eq!(pong, 7);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tokio")]
    pub fn as_task(&self) -> Runner<'_, AsTask> {
        Runner::new(self)
    }

    /// Gives a late result of the next call to `function`: a result that the caller does not get,
    /// because the call has ended before. See [`Runner::on_late`].
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
    pub fn on_late<T, E, G>(&self, function: G) -> Runner<'_, ByDefault, G>
    where
        G: FnOnce(Result<T, E>),
    {
        self.runner().on_late(function)
    }

    fn runner(&self) -> Runner<'_, ByDefault> {
        Runner::new(self)
    }

    /// Runs a sync operation on a worker thread; the calling thread is parked until the outcome.
    ///
    /// # Errors
    ///
    /// The operation's own error, or the [`TimeoutError`] converted if there is no result in time.
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
        self.runner().call(op)
    }

    /// As [`call`](Self::call), with an [`Outcome`].
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
        self.runner().outcome(op)
    }

    /// Runs an async operation, polled in place; it may borrow. The clock starts at the first poll,
    /// which also calls `op`. At the limit the token is cancelled, the future is polled once more,
    /// and dropped.
    ///
    /// Cancel safe if the operation is: dropping the call cancels the operation's token and drops
    /// the operation.
    ///
    /// # Errors
    ///
    /// The operation's own error, or the [`TimeoutError`] converted if there is no result in time.
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
        self.runner().call_async(op)
    }

    /// As [`call_async`](Self::call_async), with an [`Outcome`].
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
        self.runner().outcome_async(op)
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
