//! [`TestClock`]: virtual time.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use crate::context::CallContext;
use crate::threads::parking::CurrentParker;
use crate::time::test_clock::{self, Alarm, Inside, Kind, Order, PolledParticipant, VirtualClock};
use crate::time::{Clock, Tick};
use crate::token::CallerAlarm;

use super::thread::{self, TestThread};
use super::watcher;

/// Virtual time for tests.
///
/// Code inside [`run`](Self::run), [`scope`](Self::scope) and [`spawn`](Self::spawn) is *on the
/// clock*: everything of this crate follows the clock instead of the system's one. That holds for
/// limits, deadlines, grace, `elapsed`, the waits of a [`CancelToken`](crate::CancelToken),
/// [`drain`](crate::workers::drain), the pauses of
/// [`interrupt_with`](crate::CancelToken::interrupt_with), and the timestamps of events. Nested
/// calls are on the clock too, on workers, as tasks and in place. Threads and tasks that your code
/// starts get the clock with their [`CallContext`].
///
/// # How time moves
///
/// The clock stands while anything on it runs. When all threads and operations on it wait in
/// functions of this crate, and all futures on it are pending, it moves to the next instant for
/// which one of them waits. So a test waits for nothing, and each elapsed time is exact:
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::testing::TestClock;
/// use timeout_runtime::{TimeoutError, timeout};
///
/// #[timeout(name = "nightly", secs = 20)]
/// fn nightly() -> Result<(), TimeoutError> {
///     for _ in 0..3 {
///         cancel_token.sleep(Duration::from_secs(7))?;
///     }
///     Ok(())
/// }
///
/// let clock = TestClock::new();
/// let error = clock.run(nightly).unwrap_err();
/// assert_eq!(error.elapsed(), Duration::from_secs(20));
/// assert_eq!(clock.now(), Duration::from_secs(20));
/// ```
///
/// Deadlines of the same instant pass in the order in which they were set; that of a call is set
/// when the call starts. The clock moves to the next one when everything that the first one has
/// woken waits again.
///
/// By itself the clock moves only while a `run`, a `scope` or a `spawn` of it is under way.
/// [`advance`](Self::advance) moves it explicitly. It is the only way to move a
/// [`manual`](Self::manual) clock.
///
/// # Code that blocks elsewhere
///
/// A lock, a socket or a channel of another crate is no wait of this one: an operation that blocks
/// there counts as running, and time stands. If nothing happens on the clock for a real second, the
/// test panics with the names of what blocks, their threads, and where they last checked their
/// tokens. [`patience`](Self::patience) changes the second.
///
/// A future is different: it can be pending for any reason, so a pending future never holds the
/// time.
///
/// # Several clocks
///
/// Tests of one process can use a clock each. Clones are handles of the same clock. If the last one
/// is dropped while calls are on the clock, every deadline on it counts as passed.
///
/// A call inside a call on another clock is cancelled with it, but does not inherit its deadline:
/// only that clock knows when it passes.
#[derive(Clone, Debug)]
pub struct TestClock {
    handle: Arc<Handle>,
}

/// Keeps the time of a clock going.
pub(super) struct Handle(pub(super) Arc<VirtualClock>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl TestClock {
    /// Returns a clock that moves by itself when everything on it waits.
    #[must_use]
    pub fn new() -> Self {
        Self::with(false)
    }

    /// Returns a clock that moves only when [`advance`](Self::advance) or
    /// [`advance_to_next`](Self::advance_to_next) says so.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::testing::TestClock;
    /// use timeout_runtime::within_blocking;
    ///
    /// let clock = TestClock::manual();
    /// let call = clock.spawn(|| {
    ///     within_blocking(Duration::from_secs(5), |token| token.sleep(Duration::from_secs(60)))
    /// });
    /// clock.advance(Duration::from_secs(4));
    /// assert!(!call.is_finished());
    /// clock.advance(Duration::from_secs(1));
    /// assert!(call.join().unwrap().unwrap_err().is_timed_out());
    /// ```
    #[must_use]
    pub fn manual() -> Self {
        Self::with(true)
    }

    fn with(is_manual: bool) -> Self {
        let clock = VirtualClock::new(is_manual);
        watcher::watch(&clock, watcher::PATIENCE);
        Self {
            handle: Arc::new(Handle(clock)),
        }
    }

    /// Sets how long, in real time, nothing may happen on the clock while an operation blocks
    /// elsewhere. The default is one second.
    ///
    /// An operation that computes for longer without checking its token needs more.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::testing::TestClock;
    ///
    /// let clock = TestClock::new().patience(Duration::from_secs(30));
    /// # drop(clock);
    /// ```
    #[must_use]
    pub fn patience(self, real: Duration) -> Self {
        watcher::watch(self.clock(), real);
        self
    }

    pub(super) fn clock(&self) -> &Arc<VirtualClock> {
        &self.handle.0
    }

    /// The virtual time since the clock was created.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::testing::TestClock;
    ///
    /// let clock = TestClock::new();
    /// assert_eq!(clock.now(), Duration::ZERO);
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(clock.now(), Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn now(&self) -> Duration {
        self.clock().since_start()
    }

    /// The system time that events on the clock have now. A new clock shows the start of the year
    /// 2000 in UTC.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use timeout_runtime::testing::TestClock;
    ///
    /// let clock = TestClock::new();
    /// let start = SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_800);
    /// assert_eq!(clock.system_time(), start);
    /// ```
    #[must_use]
    pub fn system_time(&self) -> SystemTime {
        self.clock().id().system_time()
    }

    /// Runs `f` on the clock, on this thread.
    ///
    /// Operations that are abandoned by the end of `f` stay on the clock; their time stands then.
    /// [`drain`](crate::workers::drain) inside `f` waits for them.
    ///
    /// # Panics
    ///
    /// If `f` panics, and if the clock cannot move because an operation blocks elsewhere.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::CancelToken;
    /// use timeout_runtime::testing::TestClock;
    ///
    /// let clock = TestClock::new();
    /// clock.run(|| CancelToken::new().sleep(Duration::from_secs(86_400))).unwrap();
    /// assert_eq!(clock.now(), Duration::from_secs(86_400));
    /// ```
    #[track_caller]
    pub fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        let visit = self.visit("run", Location::caller());
        let result = f();
        drop(visit);
        self.fail_if_stalled();
        result
    }

    /// Wraps `future`, so that it is on the clock wherever it is polled: on Tokio, smol or any
    /// other executor.
    ///
    /// The future counts as running from this call to its first poll: spawn it or poll it soon. It
    /// leaves the clock when it is ready. The handle of a spawned task is ready a moment later, and
    /// time may have moved on: read the time inside the task.
    ///
    /// # Panics
    ///
    /// The returned future panics if the clock cannot move because an operation blocks elsewhere.
    ///
    /// # Cancel safety
    ///
    /// The returned future is cancel safe if `future` is.
    ///
    /// ```
    /// use std::future::pending;
    /// use std::time::Duration;
    /// use timeout_runtime::testing::TestClock;
    /// use timeout_runtime::within;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let clock = TestClock::new();
    /// let hour = Duration::from_secs(3600);
    /// let call = clock.scope(async move { within(hour, pending::<()>()).await });
    /// assert_eq!(call.await.unwrap_err().elapsed(), hour);
    /// # }
    /// ```
    #[track_caller]
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let kind = Kind::Test("scope", Location::caller());
        let participant = PolledParticipant::join(self.clock(), kind);
        let scope = CallContext::current().enclose_as(Some(participant), future);
        let this = self.clone();
        async move {
            let output = scope.await;
            this.fail_if_stalled();
            output
        }
    }

    /// Runs `f` on the clock, on a thread of its own. It counts as running from this call on.
    ///
    /// Start several threads inside [`run`](Self::run): outside, time can move between the starts.
    ///
    /// # Panics
    ///
    /// If the system refuses a thread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::CancelToken;
    /// use timeout_runtime::testing::TestClock;
    ///
    /// let clock = TestClock::new();
    /// clock.run(|| {
    ///     let sleep = |secs| move || CancelToken::new().sleep(Duration::from_secs(secs));
    ///     let threads = [20, 10].map(|secs| clock.spawn(sleep(secs)));
    ///     for thread in threads {
    ///         thread.join().unwrap().unwrap();
    ///     }
    ///     // They slept at the same time.
    ///     assert_eq!(clock.now(), Duration::from_secs(20));
    /// });
    /// ```
    #[track_caller]
    pub fn spawn<T, F>(&self, f: F) -> TestThread<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        thread::spawn(self.clone(), Location::caller(), f)
    }

    /// Returns a future that is ready once the clock has moved by `duration` since its first poll.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::testing::TestClock;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let clock = TestClock::new();
    /// clock.scope(clock.sleep(Duration::from_secs(7))).await;
    /// assert_eq!(clock.now(), Duration::from_secs(7));
    /// # }
    /// ```
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        let clock = Clock::Test(self.clock().id());
        let mut sleep = None;
        poll_fn(move |context| {
            let (until, alarm) = sleep.get_or_insert_with(|| {
                let until = clock.now().plus(duration);
                (until, CallerAlarm::default())
            });
            if clock.has_reached(*until) {
                return Poll::Ready(());
            }
            alarm.set(clock, *until, context);
            Poll::Pending
        })
    }

    /// Moves the clock by `duration`. Every deadline until then passes at its own instant, and the
    /// clock moves on only when everything that it has woken waits again. So `advance` with a
    /// duration of zero waits until everything else on the clock waits.
    ///
    /// Can be called anywhere: on a thread that is not on the clock, in an operation, in a listener
    /// and in a callback. The code that calls it counts as waiting meanwhile. It blocks the thread:
    /// in async code, await [`sleep`](Self::sleep).
    ///
    /// An operation that blocks elsewhere holds the clock until nothing has happened for the time
    /// of [`patience`](Self::patience). From then on `advance` moves the clock without it.
    ///
    /// The last instant of a clock is some four centuries after its start. A longer `duration`
    /// moves it there.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::testing::TestClock;
    /// use timeout_runtime::within_blocking;
    ///
    /// let clock = TestClock::new();
    /// let inside = clock.clone();
    /// let result = clock.run(|| {
    ///     within_blocking(Duration::from_secs(5), move |token| {
    ///         inside.advance(Duration::from_secs(3));
    ///         token.remaining()
    ///     })
    /// });
    /// assert_eq!(result, Ok(Some(Duration::from_secs(2))));
    /// ```
    #[track_caller]
    pub fn advance(&self, duration: Duration) {
        let _visit = self.visit("advance", Location::caller());
        self.advance_to(self.clock().after(duration));
    }

    /// Waits until everything else on the clock waits, and then moves it to the next deadline.
    /// Returns how far it has moved, or `None` if no deadline is set.
    ///
    /// Otherwise as [`advance`](Self::advance).
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::CancelToken;
    /// use timeout_runtime::testing::TestClock;
    ///
    /// let clock = TestClock::manual();
    /// let sleeper = clock.spawn(|| CancelToken::new().sleep(Duration::from_secs(7)));
    /// assert_eq!(clock.advance_to_next(), Some(Duration::from_secs(7)));
    /// assert_eq!(clock.advance_to_next(), None);
    /// sleeper.join().unwrap().unwrap();
    /// ```
    #[allow(clippy::must_use_candidate)] // Mostly called for its effect.
    #[track_caller]
    pub fn advance_to_next(&self) -> Option<Duration> {
        let _visit = self.visit("advance_to_next", Location::caller());
        self.advance_to(self.clock().now());
        let now = self.clock().now();
        let next = self.clock().next_alarm()?;
        self.advance_to(next);
        Some(next.since(now))
    }

    fn advance_to(&self, target: Tick) {
        let clock = self.clock();
        let _target = clock.target(target);
        let parker = CurrentParker::get();
        let alarm = clock.arm(target, clock.order(), parker.waker().clone());
        let id = Clock::Test(clock.id());
        while alarm.as_ref().is_some_and(Alarm::is_armed) {
            parker.park_on(id, Tick::NEVER, Order::NONE);
        }
    }

    /// Makes this thread a participant of the clock, unless it is one already.
    fn visit(&self, method: &'static str, place: &'static Location<'static>) -> Option<Inside> {
        let is_new = test_clock::current_clock() != Some(self.clock().id());
        is_new.then(|| Inside::enter(self.clock(), Kind::Test(method, place)))
    }

    #[track_caller]
    fn fail_if_stalled(&self) {
        if let Some(report) = self.clock().stalled() {
            panic!("{report}");
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:?}", self.0.since_start())
    }
}
