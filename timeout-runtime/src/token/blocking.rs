//! Blocking waits that check the token in between: `recv` for a channel, `wait_while` for a
//! condition variable, `lock` for a mutex, and `wait_until` for anything that can be tried again.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Condvar, LockResult, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use crate::outcome::TimeoutError;
use crate::time::Clock;
use crate::time::test_clock::Resting;

use super::{CancelToken, checks};

/// The longest wait between two checks of the token.
const LONGEST_STEP: Duration = Duration::from_millis(10);

/// The wait after the first attempt of `wait_until`. Each further wait is twice as long.
const FIRST_STEP: Duration = Duration::from_micros(50);

impl CancelToken {
    /// Blocks until the channel has a value, and receives it. Returns `None` once all senders are
    /// gone.
    ///
    /// The wait ends at the token's deadline, and at most 10 ms after any other cancellation. No
    /// value is lost: a value that is not returned stays in the channel.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timeout_runtime::{TimeoutError, timeout};
    ///
    /// let (sender, rows) = channel::<u32>();
    /// sender.send(7).unwrap();
    ///
    /// #[timeout(name = "first", secs = 5)]
    /// fn first(rows: std::sync::mpsc::Receiver<u32>) -> Result<Option<u32>, TimeoutError> {
    ///     cancel_token.recv(&rows)
    /// }
    ///
    /// assert_eq!(first(rows)?, Some(7));
    /// # Ok::<(), TimeoutError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of [`check`](Self::check) once the token is cancelled.
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn recv<T>(&self, channel: &Receiver<T>) -> Result<Option<T>, TimeoutError> {
        checks::record(self);
        let mut steps = Steps::new();
        loop {
            self.result()?;
            match channel.try_recv() {
                Ok(value) => return Ok(Some(value)),
                Err(TryRecvError::Disconnected) => return Ok(None),
                Err(TryRecvError::Empty) => {}
            }
            let received = steps.wait(self, |step| channel.recv_timeout(step));
            if let Ok(value) = received {
                return Ok(Some(value));
            }
        }
    }

    /// Blocks on a condition variable while `condition` holds, as
    /// [`Condvar::wait_while`](std::sync::Condvar::wait_while). Ignores poisoning. Also replaces a
    /// loop around [`Condvar::wait`](std::sync::Condvar::wait).
    ///
    /// The wait ends at the token's deadline, and at most 10 ms after any other cancellation. A
    /// notification that arrives together with the cancellation wakes another waiting thread, as if
    /// this one had not waited.
    ///
    /// ```
    /// use std::sync::{Condvar, Mutex};
    /// use timeout_runtime::CancelToken;
    ///
    /// let (rows, filled) = (Mutex::new(vec![7]), Condvar::new());
    /// let token = CancelToken::new();
    /// let mut rows = token.wait_while(&filled, rows.lock().unwrap(), |rows| rows.is_empty())?;
    /// assert_eq!(rows.pop(), Some(7));
    /// # Ok::<(), timeout_runtime::TimeoutError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of [`check`](Self::check) once the token is cancelled. The lock is released
    /// then.
    ///
    /// # Panics
    ///
    /// May panic if `condvar` is used with more than one mutex, as in the standard library.
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn wait_while<'a, T>(
        &self,
        condvar: &Condvar,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> Result<MutexGuard<'a, T>, TimeoutError> {
        checks::record(self);
        let mut steps = Steps::new();
        let mut was_notified = false;
        loop {
            if let Err(error) = self.result() {
                if was_notified {
                    // `notify_one` of another thread has woken this thread alone.
                    condvar.notify_one();
                }
                return Err(error);
            }
            if !condition(&mut guard) {
                return Ok(guard);
            }
            let waited = steps.wait(self, |step| condvar.wait_timeout(guard, step));
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            guard = woken;
            was_notified = !timeout.timed_out();
        }
    }

    /// Blocks until the mutex is free, and returns what [`Mutex::lock`] returns: the guard, inside
    /// an error if the mutex is poisoned.
    ///
    /// The mutex is tried again after pauses that grow to 10 ms, so threads in [`Mutex::lock`] can
    /// lock it first. The wait ends at the token's deadline, and at any other cancellation.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use timeout_runtime::CancelToken;
    ///
    /// let (token, total) = (CancelToken::new(), Mutex::new(0));
    /// *token.lock(&total)?.unwrap() += 1;
    /// assert_eq!(*total.lock().unwrap(), 1);
    /// # Ok::<(), timeout_runtime::TimeoutError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of [`check`](Self::check) once the token is cancelled.
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn lock<'a, T: ?Sized>(
        &self,
        mutex: &'a Mutex<T>,
    ) -> Result<LockResult<MutexGuard<'a, T>>, TimeoutError> {
        self.wait_until(|| match mutex.try_lock() {
            Ok(guard) => Some(Ok(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    /// Calls `attempt` again and again until it returns a value. For things that can only be tried:
    /// the end of a thread, a socket that does not block, a lock of another crate.
    ///
    /// The pauses between the attempts grow to 10 ms. They end at the token's deadline, and at any
    /// other cancellation.
    ///
    /// ```
    /// use std::thread;
    /// use timeout_runtime::CancelToken;
    ///
    /// let token = CancelToken::new();
    /// let thread = thread::spawn(|| 7);
    /// token.wait_until(|| thread.is_finished().then_some(()))?;
    /// assert_eq!(thread.join().unwrap(), 7);
    /// # Ok::<(), timeout_runtime::TimeoutError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of [`check`](Self::check) once the token is cancelled.
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn wait_until<T>(&self, attempt: impl FnMut() -> Option<T>) -> Result<T, TimeoutError> {
        self.wait_until_on(Clock::of_thread(), attempt)
    }

    /// As `wait_until`, with pauses on `clock`.
    #[cfg_attr(feature = "test-util", track_caller)]
    pub(crate) fn wait_until_on<T>(
        &self,
        clock: Clock,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Result<T, TimeoutError> {
        checks::record(self);
        let mut step = FIRST_STEP;
        loop {
            self.result()?;
            if let Some(value) = attempt() {
                return Ok(value);
            }
            let _ = self.wait_on(clock, step);
            step = (2 * step).min(LONGEST_STEP);
        }
    }
}

/// The waits between two looks at a channel or a condition.
struct Steps {
    resting: Resting,
}

impl Steps {
    /// The first look follows.
    fn new() -> Self {
        Self {
            resting: Resting::here(),
        }
    }

    /// Waits with `wait` until the next look.
    fn wait<T>(&mut self, token: &CancelToken, wait: impl FnOnce(Duration) -> T) -> T {
        self.resting.rest(|step| {
            wait(step.unwrap_or_else(|| token.remaining_or(LONGEST_STEP).min(LONGEST_STEP)))
        })
    }
}
