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
use std::sync::{LazyLock, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::event::{CallId, WorkerName};
use crate::memory::Shrink;
use crate::pool::settings;
use crate::sync::lock;
use crate::threads::parking::CurrentParker;
use crate::time::{Clock, Tick};
use crate::token::CallerAlarm;
use crate::unwind;

struct Left {
    call: CallId,
    name: &'static str,
    worker: Option<WorkerName>,
    clock: Clock,
    since: Tick,
}

/// Identifies an abandoned operation: the address of the state that both sides of its call share.
pub(crate) type Key = usize;

#[derive(Default)]
struct Table {
    /// By that address.
    by_key: HashMap<Key, Left>,
    by_name: HashMap<&'static str, usize>,
    /// The clocks of operations that have ended, and whose late event is not yet emitted.
    reporting: Vec<Clock>,
    /// The threads and tasks that wait in `drain`, by their keys, and their clocks.
    draining: HashMap<u64, (Clock, Waker)>,
    next_drain: u64,
}

impl Table {
    /// How many operations `drain` waits for: on a test clock, those on this clock.
    fn left(&self, clock: Clock) -> usize {
        let clocks = self.by_key.values().map(|left| left.clock);
        let clocks = clocks.chain(self.reporting.iter().copied());
        clocks
            .filter(|operation| waits_for(clock, *operation))
            .count()
    }
}

/// Whether `drain` on `clock` waits for an operation on the clock `operation`.
fn waits_for(clock: Clock, operation: Clock) -> bool {
    operation == clock || !clock.is_for_tests()
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);
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
            age: left.clock.now().since(left.since),
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
/// On a `testing::TestClock`, it waits for the operations on that clock, and `longest` is virtual.
///
/// This blocks the calling thread. On a current-thread Tokio runtime that keeps abandoned tasks
/// from running; call it from `spawn_blocking` there.
#[allow(clippy::must_use_candidate)] // Mostly called for its effect.
pub fn drain(longest: Duration) -> usize {
    let clock = Clock::of_thread();
    let order = clock.order();
    let parker = CurrentParker::get();
    let drain = Drain::begin(clock, longest);
    loop {
        if let Some(left) = drain.look(parker.waker()) {
            return left;
        }
        parker.park_on(clock, drain.until, order);
    }
}

/// As [`drain`], for async code on any executor: waits without blocking the thread.
///
/// `longest` counts from the first poll, by the system's clock, also while Tokio's time is paused,
/// or by the `testing::TestClock` of the task.
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
    let drain = Drain::begin(Clock::of_thread(), longest);
    let alarm = CallerAlarm::default();
    DrainFuture { drain, alarm }.await
}

/// One wait. Dropping it removes its waker.
struct Drain {
    key: u64,
    clock: Clock,
    until: Tick,
}

impl Drain {
    fn begin(clock: Clock, longest: Duration) -> Self {
        let key = {
            let mut table = lock(&*TABLE);
            table.next_drain += 1;
            table.next_drain
        };
        let until = clock.now().plus(longest);
        Self { key, clock, until }
    }

    /// Registers `waker`. Then returns how many operations are left, if the wait is over.
    fn look(&self, waker: &Waker) -> Option<usize> {
        // Cloned and dropped outside the lock: a waker is code of users.
        let waker = waker.clone();
        let (left, replaced) = {
            let mut table = lock(&*TABLE);
            let left = table.left(self.clock);
            (left, table.draining.insert(self.key, (self.clock, waker)))
        };
        unwind::drop_catching(replaced);
        let is_over = left == 0 || self.clock.has_reached(self.until);
        is_over.then_some(left)
    }
}

struct DrainFuture {
    drain: Drain,
    alarm: CallerAlarm,
}

impl Future for DrainFuture {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        let Self { drain, alarm } = &mut *self;
        if let Some(left) = drain.look(context.waker()) {
            return Poll::Ready(left);
        }
        alarm.set(drain.clock, drain.until, context);
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

/// Adds an operation, whose call ends now on `clock`.
pub(crate) fn add(
    key: Key,
    call: CallId,
    name: &'static str,
    worker: Option<WorkerName>,
    clock: Clock,
) {
    let left = Left {
        call,
        name,
        worker,
        clock,
        since: clock.now(),
    };
    let mut table = lock(&*TABLE);
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
    clock: Clock,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let woken: HashMap<_, _> = {
            let mut table = lock(&*TABLE);
            let mut reporting = table.reporting.iter();
            if let Some(at) = reporting.position(|clock| *clock == self.clock) {
                table.reporting.swap_remove(at);
            }
            let draining = mem::take(&mut table.draining).into_iter();
            let (woken, others) =
                draining.partition(|(_, (clock, _))| waits_for(*clock, self.clock));
            table.draining = others;
            woken
        };
        for (_, waker) in woken.into_values() {
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
    table.reporting.push(left.clock);
    COUNT.fetch_sub(1, Ordering::Relaxed);
    Some(Ended {
        call: left.call,
        clock: left.clock,
    })
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
