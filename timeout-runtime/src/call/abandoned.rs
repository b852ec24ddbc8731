//! The list of abandoned operations, which still run although their calls have ended.
//!
//! `drain` waits until it is empty. It also tells how many operations of a name are abandoned, so
//! that a further call can be refused.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::event::{CallId, WorkerName};
use crate::memory::Shrink;
use crate::pool::settings;
use crate::sync::lock;
use crate::time::Clock;
use crate::time::Tick;
use crate::token::CallerAlarm;
use crate::unwind;

struct Left {
    call: CallId,
    name: &'static str,
    worker: Option<WorkerName>,
    since: Instant,
}

/// Identifies an abandoned operation: the address of the state that both sides of its call share.
pub(crate) type Key = usize;

#[derive(Default)]
struct Table {
    /// By that address.
    by_key: HashMap<Key, Left>,
    by_name: HashMap<&'static str, usize>,
    /// How many operations have ended whose late event is not yet emitted.
    reporting: usize,
    /// The tasks that wait in `drain_async`, by the keys of their futures.
    draining: HashMap<u64, Waker>,
    next_drain: u64,
}

impl Table {
    /// How many operations `drain` waits for.
    fn left(&self) -> usize {
        self.by_key.len() + self.reporting
    }
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);
static REMOVED: Condvar = Condvar::new();
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// An operation that still runs although its call has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abandoned {
    /// The id of its call.
    pub call: CallId,
    /// The name of its call.
    pub name: &'static str,
    /// The worker that runs it; `None` for a task.
    pub worker: Option<WorkerName>,
    /// How long ago its call ended.
    pub age: Duration,
}

/// The abandoned operations, the oldest first.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use timeout_runtime::{within_blocking, workers};
///
/// let (finish, finished) = mpsc::channel::<()>();
/// let report = within_blocking(Duration::from_secs(60), move |token| {
///     token.cancel(); // ends the call, as the limit would
///     finished.recv() // does not check the token
/// });
/// assert!(report.is_err());
/// for operation in workers::abandoned() {
///     eprintln!("{} is still running after {:?}", operation.name, operation.age);
/// }
/// assert_eq!(workers::abandoned().len(), 1);
/// # drop(finish);
/// ```
#[must_use]
pub fn abandoned() -> Vec<Abandoned> {
    let mut abandoned: Vec<_> = lock(&*TABLE)
        .by_key
        .values()
        .map(|left| Abandoned {
            call: left.call,
            name: left.name,
            worker: left.worker,
            age: left.since.elapsed(),
        })
        .collect();
    abandoned.sort_by_key(|left| Reverse(left.age));
    abandoned
}

/// Waits until all abandoned operations have ended and their late events are emitted, for `longest`
/// at most. Returns how many are left. [`Duration::MAX`] waits without a bound.
///
/// Made for an orderly shutdown, after the last call: an operation that still runs when the process
/// ends is cut off.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::{within_blocking, workers};
///
/// let report = within_blocking(Duration::from_millis(5), |token| {
///     while !token.is_cancelled() {}
/// });
/// assert!(report.is_err());
/// assert_eq!(workers::drain(Duration::from_secs(60)), 0); // at the end of `main`
/// ```
///
/// This blocks the calling thread. On a current-thread Tokio runtime that keeps abandoned tasks
/// from running; call it from `spawn_blocking` there.
#[allow(clippy::must_use_candidate)] // Mostly called for its effect.
pub fn drain(longest: Duration) -> usize {
    let until = Instant::now().checked_add(longest);
    let mut table = lock(&*TABLE);
    while table.left() != 0 {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            break;
        }
        let left = left.unwrap_or(Duration::from_secs(3600));
        table = REMOVED
            .wait_timeout(table, left)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
    table.left()
}

/// As [`drain`], for async code on any executor: waits without blocking the thread.
///
/// `longest` counts from the first poll, by the system's clock, also while Tokio's time is paused.
/// The result is the number of operations that are still running then, and `0` once all have ended.
/// Abandoned tasks of a current-thread runtime end meanwhile, since the runtime polls them.
///
/// Cancel safe: dropping the future stops nothing, and a later call waits for the same operations.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::workers;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let still_running = workers::drain_async(Duration::from_secs(10)).await;
/// assert_eq!(still_running, 0);
/// # }
/// ```
pub async fn drain_async(longest: Duration) -> usize {
    let until = Tick::now().plus(longest);
    let key = {
        let mut table = lock(&*TABLE);
        table.next_drain += 1;
        table.next_drain
    };
    let alarm = CallerAlarm::default();
    Drain { key, until, alarm }.await
}

/// One wait of `drain_async`. Dropping it removes its waker.
struct Drain {
    key: u64,
    until: Tick,
    alarm: CallerAlarm,
}

impl Future for Drain {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        // Cloned and dropped outside the lock: a waker is code of users.
        let waker = context.waker().clone();
        let (left, replaced) = {
            let mut table = lock(&*TABLE);
            (table.left(), table.draining.insert(self.key, waker))
        };
        unwind::drop_catching(replaced);
        if left == 0 || Clock::Real.has_reached(self.until) {
            return Poll::Ready(left);
        }
        let until = self.until;
        self.alarm.set(Clock::Real, until, context);
        Poll::Pending
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        let waker = lock(&*TABLE).draining.remove(&self.key);
        unwind::drop_catching(waker);
    }
}

/// Whether there are abandoned operations.
#[inline]
pub(crate) fn any() -> bool {
    count() != 0
}

/// How many abandoned operations there are.
pub(crate) fn count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// How many abandoned operations run on a worker.
pub(crate) fn on_workers() -> usize {
    lock(&*TABLE)
        .by_key
        .values()
        .filter(|left| left.worker.is_some())
        .count()
}

pub(crate) fn add(key: Key, call: CallId, name: &'static str, worker: Option<WorkerName>) {
    let mut table = lock(&*TABLE);
    let left = Left {
        call,
        name,
        worker,
        since: Instant::now(),
    };
    if table.by_key.insert(key, left).is_none() {
        *table.by_name.entry(name).or_default() += 1;
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

/// The names of all abandoned operations.
#[cfg(feature = "metrics")]
pub(crate) fn names() -> Vec<&'static str> {
    lock(&*TABLE).by_name.keys().copied().collect()
}

/// How many operations called `name` are abandoned.
#[cfg(feature = "metrics")]
pub(crate) fn count_of(name: &str) -> usize {
    let table = lock(&*TABLE);
    table.by_name.get(name).copied().unwrap_or(0)
}

/// An operation that was removed. `drain` waits until this is dropped, after its late event.
pub(crate) struct Ended {
    pub(crate) call: CallId,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let draining = {
            let mut table = lock(&*TABLE);
            table.reporting -= 1;
            mem::take(&mut table.draining)
        };
        REMOVED.notify_all();
        for waker in draining.into_values() {
            unwind::contain(|| waker.wake());
        }
    }
}

/// Removes an operation that has ended. Returns `None` if it was never added.
pub(crate) fn remove(key: Key) -> Option<Ended> {
    let mut table = lock(&*TABLE);
    let left = table.by_key.remove(&key)?;
    table.by_key.shrink();
    if let Some(count) = table.by_name.get_mut(left.name) {
        *count -= 1;
        if *count == 0 {
            table.by_name.remove(left.name);
            table.by_name.shrink();
        }
    }
    table.reporting += 1;
    COUNT.fetch_sub(1, Ordering::Relaxed);
    Some(Ended { call: left.call })
}

/// Whether so many operations called `name` are abandoned that no other may start. The default for
/// `most` is half of the worker cap.
pub(crate) fn too_many(name: &str, most: Option<usize>) -> bool {
    let most = most.unwrap_or_else(|| settings::cap() / 2);
    count() >= most
        && lock(&*TABLE)
            .by_name
            .get(name)
            .is_some_and(|&count| count >= most)
}
