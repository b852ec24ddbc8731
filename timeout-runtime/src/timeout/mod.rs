//! [`Timeout`]: the policy behind the attribute, usable without it.

mod place;
mod runners;
pub(crate) mod within;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::call::options::CallOptions;
use crate::event::Event;
use crate::event::clock::OwnClock;
use crate::event::listener::Own;
use crate::outcome::InvalidLimit;
use crate::terms::{Policy, PolicyRef};

#[cfg(feature = "tokio")]
use place::AsTask;
use place::{ByDefault, Inline, OnWorker};

/// A named limit and the policy around it, as a value: what the attribute sets, for operations that
/// are closures.
///
/// Four methods run an operation. `call` and `call_async` give a `Result`; `outcome` and
/// `outcome_async` give an [`Outcome`](crate::Outcome), which tells all endings apart. Each
/// operation takes its [`CancelToken`](crate::CancelToken). A selector chooses the place:
///
/// | place | sync: `call`, `outcome` | async: `call_async`, `outcome_async` |
/// |---|---|---|
/// | none | on a worker: `Send + 'static` | polled in place; may borrow |
/// | [`inline()`](Self::inline) | on the caller's thread; may borrow | polled in place; may borrow |
/// | [`on_worker()`](Self::on_worker) | on a worker: `Send + 'static` | on a worker: the closure is `Send + 'static`, its future need not be `Send` |
/// | `as_task()` | | a Tokio task: closure and future are `Send + 'static` |
///
/// [`on_late`](Self::on_late) adds a function for results that come too late. Selectors and
/// `on_late` return a policy. It can be kept, and used for any number of calls. `P` is its place,
/// and `L` is its function for late results.
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
pub struct Timeout<P = ByDefault, L = ()> {
    policy: Arc<Policy>,
    limit: Duration,
    grace: Duration,
    max_abandoned: Option<usize>,
    late: L,
    place: PhantomData<fn() -> P>,
}

impl Timeout {
    /// Makes a policy for calls named `name`, with `limit` for each. [`Duration::MAX`] means no
    /// limit.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidLimit`] if `limit` is zero.
    pub fn new(name: &'static str, limit: Duration) -> Result<Self, InvalidLimit> {
        Self {
            policy: Arc::new(Policy::new(name)),
            limit,
            grace: Duration::ZERO,
            max_abandoned: None,
            late: (),
            place: PhantomData,
        }
        .with_limit(limit)
    }
}

impl<P, L> Timeout<P, L> {
    /// Changes the limit. [`Duration::MAX`] means no limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// let configured = Duration::from_secs("60".parse()?);
    /// let fetch = Timeout::new("fetch", Duration::from_secs(2))?.with_limit(configured)?;
    /// let left = fetch.call(|token| Ok::<_, TimeoutError>(token.remaining()))?;
    /// assert!(left > Some(Duration::from_secs(2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`InvalidLimit`] if `limit` is zero.
    pub fn with_limit(mut self, limit: Duration) -> Result<Self, InvalidLimit> {
        if limit.is_zero() {
            return Err(InvalidLimit { name: self.name() });
        }
        self.limit = limit;
        Ok(self)
    }

    /// Whether the limit cancels the operation's token; by default, it does. With `false` the
    /// operation keeps running, abandoned, and its nested calls are not bound by the limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{Deadline, Timeout, TimeoutError};
    ///
    /// let audit = Timeout::new("audit", Duration::from_secs(60))?.cancel_on_timeout(false);
    /// let deadline = audit.call(|token| Ok::<_, TimeoutError>(token.deadline()));
    /// assert_eq!(deadline, Ok(Deadline::never()));
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    #[must_use]
    pub fn cancel_on_timeout(self, cancel: bool) -> Self {
        self.with_policy(|policy| policy.cancel = cancel)
    }

    /// How long after the cancellation a result still counts; by default, not at all. The caller
    /// waits at most limit + grace. Without effect if the limit does not cancel the token.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// let scan = Timeout::new("scan", Duration::from_millis(5))?;
    /// let rows = scan.inline().with_grace(Duration::from_secs(60)).call(|token| {
    ///     let rows = (0..).take_while(|_| !token.is_cancelled()).last();
    ///     Ok::<Option<u64>, TimeoutError>(rows)
    /// });
    /// assert!(rows.is_ok());
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Refuses to start an operation while `most` operations of this name are abandoned; by default
    /// half of the worker cap. A refused call has the cause
    /// [`Cause::NoWorker`](crate::Cause::NoWorker).
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use timeout_runtime::{CallStatus, Timeout, TimeoutError};
    ///
    /// let report = Timeout::new("report", Duration::from_secs(60))?.with_max_abandoned(1);
    /// let (finish, finished) = mpsc::channel::<()>();
    /// let first = report.outcome(move |token| {
    ///     token.cancel(); // ends the call, as the limit would
    ///     finished.recv() // does not check the token
    /// });
    /// let second = report.outcome(|_token| Ok::<_, TimeoutError>(()));
    /// assert_eq!(first.status(), CallStatus::UpstreamCancelled);
    /// assert_eq!(second.status(), CallStatus::NotStarted);
    /// # drop(finish);
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    #[must_use]
    pub fn with_max_abandoned(mut self, most: usize) -> Self {
        self.max_abandoned = Some(most);
        self
    }

    /// Adds a listener for the events of this policy's calls. It receives each event before the
    /// listeners of the process. A second listener replaces the first.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// let (sender, kinds) = mpsc::channel();
    /// let price = Timeout::new("price", Duration::from_secs(60))?
    ///     .with_listener(move |event| sender.send(event.kind.as_str()).unwrap());
    /// assert_eq!(price.call(|_token| Ok::<_, TimeoutError>(7)), Ok(7));
    /// assert_eq!(kinds.recv()?, "succeeded");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// use std::sync::mpsc;
    /// use std::time::{Duration, SystemTime};
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// let (sender, times) = mpsc::channel();
    /// let stock = Timeout::new("stock", Duration::from_secs(60))?
    ///     .with_clock(|| SystemTime::UNIX_EPOCH)
    ///     .with_listener(move |event| sender.send(event.timestamp).unwrap());
    /// assert_eq!(stock.call(|_token| Ok::<_, TimeoutError>(7)), Ok(7));
    /// assert_eq!(times.recv()?, SystemTime::UNIX_EPOCH);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
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
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::Timeout;
    ///
    /// let price = Timeout::new("price", Duration::from_secs(60))?;
    /// assert_eq!(format!("{} is slow", price.name()), "price is slow");
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.policy.name
    }

    fn options(&self) -> CallOptions {
        CallOptions {
            max_abandoned: self.max_abandoned,
            ..CallOptions::new(PolicyRef::Shared(Arc::clone(&self.policy)))
        }
        .limit(self.limit)
        .grace(self.grace)
    }

    /// Gives late results to `function`: results that the caller does not get, because its call has
    /// ended before. Without it, a late result is dropped. A second function replaces the first.
    ///
    /// A clone of `function` runs at most once for each call, on the thread where the operation
    /// ends, before the late event. A panic of `function` changes no outcome.
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
    ///
    /// Inline, `function` may borrow:
    ///
    /// ```
    /// use std::cell::Cell;
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// let scan = Timeout::new("scan", Duration::from_millis(10))?;
    /// let late = Cell::new(None);
    /// let outcome = scan.inline().on_late(|result| late.set(Some(result))).outcome(|token| {
    ///     while !token.is_cancelled() {}
    ///     Ok::<u32, TimeoutError>(7)
    /// });
    /// assert!(outcome.timeout_error().is_some());
    /// assert_eq!(late.take(), Some(Ok(7)));
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    #[must_use]
    pub fn on_late<T, E, G>(&self, function: G) -> Timeout<P, G>
    where
        G: Fn(Result<T, E>) + Clone,
    {
        self.with(function)
    }

    /// The same policy for the place `Q`, with the function `late` for late results.
    fn with<Q, G>(&self, late: G) -> Timeout<Q, G> {
        Timeout {
            policy: Arc::clone(&self.policy),
            limit: self.limit,
            grace: self.grace,
            max_abandoned: self.max_abandoned,
            late,
            place: PhantomData,
        }
    }
}

/// Selectors.
impl<P, L: Clone> Timeout<P, L> {
    /// Runs operations where their caller is: a sync one on the caller's thread, an async one
    /// polled in place. They may borrow.
    ///
    /// The caller gets its error only when a sync operation returns, or when a poll does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{Timeout, TimeoutError};
    ///
    /// let sum = Timeout::new("sum", Duration::from_secs(5))?.inline();
    /// for rows in [vec![1, 2, 3], vec![4]] {
    ///     let total = sum.call(|_token| Ok::<u32, TimeoutError>(rows.iter().sum()));
    ///     assert!(total.is_ok());
    /// }
    /// # Ok::<(), timeout_runtime::InvalidLimit>(())
    /// ```
    #[must_use]
    pub fn inline(&self) -> Timeout<Inline, L> {
        self.with(self.late.clone())
    }

    /// Runs operations on a worker thread. An async one is built and polled there: its future need
    /// not be `Send`, and may block.
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
    #[must_use]
    pub fn on_worker(&self) -> Timeout<OnWorker, L> {
        self.with(self.late.clone())
    }

    /// Spawns operations on the Tokio runtime around the call. Async operations only. Outside a
    /// runtime a call is not started, with [`Cause::NoRuntime`](crate::Cause::NoRuntime).
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
    #[must_use]
    pub fn as_task(&self) -> Timeout<AsTask, L> {
        self.with(self.late.clone())
    }
}

impl<P, L> fmt::Debug for Timeout<P, L> {
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
