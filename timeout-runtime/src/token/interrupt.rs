//! [`Interruption`]: stops blocking work from outside when its token is cancelled.
//!
//! ```text
//!              cancelled            returns
//!   working ─────────────► stopping ───────► pausing
//!      │                      ▲                │  │
//!      │                      └── time is up ──┘  │
//!      └────────────── work returns ──────────────┴──► over
//! ```
//!
//! 1. The stop function runs in *stopping* only, and *stopping* is never left for *over*. So
//!    `interrupt_with` does not return while the function runs, and the function never runs
//!    afterwards.
//! 2. If the function has run at all, the token is cancelled, and the result is an error.
//! 3. A pause holds no thread: an alarm of the timer ends it. Without a timer, the thread that has
//!    called the function sleeps. The thread that works never does: it would wait for itself.

mod futures;
mod pause;

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::outcome::TimeoutError;
use crate::sync::{Condvar, Mutex, lock};
use crate::threads::background;
use crate::time::Clock;
use crate::unwind;

use super::{CancelToken, checks};
use pause::Pause;

/// The pauses between the stops of one interruption.
#[derive(Default)]
struct Pauses {
    /// How many there were.
    past: u32,
}

impl Pauses {
    /// Returns the next pause. Within the first second, a stop that came between two statements is
    /// repeated soon. Work that continues after that cannot be stopped so, and each stop may cost a
    /// server a connection.
    fn next(&mut self) -> Duration {
        let doublings = match self.past {
            early @ 0..36 => early.min(5),
            late => (late - 30).min(10),
        };
        self.past = self.past.saturating_add(1);
        Duration::from_millis(1 << doublings)
    }
}

impl CancelToken {
    /// Runs blocking `work` on this thread, and calls `stop` when the token is cancelled meanwhile.
    ///
    /// `stop` makes `work` return: it cancels a query, shuts a socket down or closes a channel. It
    /// runs on a background thread, again and again until `work` has returned. So a stop also takes
    /// effect if it is lost while nothing runs, as the cancel request of a database is between two
    /// statements. The pauses grow from 1 ms to 32 ms, and after a second to about 1 s.
    ///
    /// This function does not return while `stop` runs, and `stop` does not run afterwards. So a
    /// connection can be used again. If this returns a value, `stop` has not run at all. A panic in
    /// `stop` is caught. What `stop` returns is dropped.
    ///
    /// A `stop` that blocks keeps this function from returning: give a cancel request a timeout of
    /// its own. The caller of an annotated function on a worker gets its error at the limit all the
    /// same.
    ///
    /// ```
    /// use std::io::Read;
    /// use std::net::{Shutdown, TcpListener, TcpStream};
    /// use std::time::Duration;
    /// use timeout_runtime::{CallContext, CancelToken, Deadline};
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let mut silent = TcpStream::connect(listener.local_addr()?)?;
    /// let other = silent.try_clone()?;
    ///
    /// let limit = Deadline::after(Duration::from_millis(10));
    /// let error = CallContext::detached().with_deadline(limit).run(|| {
    ///     let token = CancelToken::current();
    ///     let stop = move || other.shutdown(Shutdown::Both);
    ///     token.interrupt_with(stop, || silent.read(&mut [0; 8])).unwrap_err()
    /// });
    /// assert!(error.is_deadline_exceeded());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of [`check`](Self::check) if the token is cancelled before `work` starts,
    /// which then never runs, or before it returns. In that case the value of `work` is dropped: it
    /// may be incomplete. If it is needed all the same, `work` can store it:
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use timeout_runtime::CancelToken;
    ///
    /// let (token, (sender, rows)) = (CancelToken::new(), channel());
    /// sender.send(7).unwrap();
    /// let (mut read, mut sender) = (Vec::new(), Some(sender));
    /// let stop = move || drop(sender.take());
    /// let result = token.interrupt_with(stop, || {
    ///     token.cancel();
    ///     read.extend(&rows); // until the channel is closed
    /// });
    /// assert!(result.is_err());
    /// assert_eq!(read, [7]);
    /// ```
    ///
    /// # Panics
    ///
    /// A panic of `work` passes through, after a running `stop` has returned.
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn interrupt_with<T, S>(
        &self,
        mut stop: impl FnMut() -> S + Send + 'static,
        work: impl FnOnce() -> T,
    ) -> Result<T, TimeoutError> {
        checks::record(self);
        self.result()?;
        let interruption = Interruption::new(Box::new(move || drop(stop())));
        let registration = self.try_register({
            let interruption = Arc::clone(&interruption);
            move || interruption.stop()
        });
        let output = {
            let _end = EndOnDrop(&interruption);
            // Nothing is registered on a token that was cancelled since the first check. Otherwise
            // the stop may have come before the work.
            self.result()?;
            work()
        };
        drop(registration);
        self.result().map(|()| output)
    }
}

type Stop = Box<dyn FnMut() + Send>;

/// One call of `interrupt_with`.
struct Interruption {
    state: Mutex<InterruptionState>,
    is_idle: Condvar,
    /// The thread that works.
    worker: ThreadId,
    /// The clock of that thread.
    clock: Clock,
}

struct InterruptionState {
    /// `None` while the function runs.
    stop: Option<Stop>,
    /// The work has returned.
    is_over: bool,
    pauses: Pauses,
    /// The current pause.
    current: Option<Pause>,
}

impl Interruption {
    fn new(stop: Stop) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(InterruptionState {
                stop: Some(stop),
                is_over: false,
                pauses: Pauses::default(),
                current: None,
            }),
            is_idle: Condvar::default(),
            worker: thread::current().id(),
            clock: Clock::of_thread(),
        })
    }

    /// Calls the function, and arranges the next call. Runs on a background thread.
    fn stop(self: &Arc<Self>) {
        while let Some(mut stop) = self.begin_stop() {
            unwind::contain(&mut stop);
            match self.end_stop(stop) {
                Some(pause) if thread::current().id() != self.worker => thread::sleep(pause),
                _ => return,
            }
        }
    }

    fn begin_stop(&self) -> Option<Stop> {
        let mut state = lock(&self.state);
        state.current = None;
        if state.is_over {
            return None;
        }
        state.stop.take()
    }

    /// Makes the timer end the pause before the next call. Returns the pause if there is no timer.
    fn end_stop(self: &Arc<Self>, stop: Stop) -> Option<Duration> {
        let mut state = lock(&self.state);
        state.stop = Some(stop);
        if state.is_over {
            drop(state);
            self.is_idle.notify_one();
            return None;
        }
        let pause = state.pauses.next();
        let waker = Waker::from(Arc::clone(self));
        // Under the lock, so that a pause that is over already cannot be taken for the next one.
        state.current = Pause::begin(self.clock, pause, waker);
        state.current.is_none().then_some(pause)
    }

    /// The work has returned: waits for a running function, and keeps it from running again.
    fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        while state.stop.is_none() {
            state = self.is_idle.wait(&self.state, state, None);
        }
        let current = state.current.take();
        let stop = state.stop.take();
        drop(state);
        drop(current);
        unwind::drop_catching(stop);
    }
}

impl Wake for Interruption {
    fn wake(self: Arc<Self>) {
        background::run(move || self.stop());
    }
}

/// Ends the interruption, also when the work panics.
struct EndOnDrop<'a>(&'a Arc<Interruption>);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_frequent_for_a_second_and_rare_afterwards() {
        let mut pauses = Pauses::default();
        let mut next = || pauses.next().as_millis();
        assert_eq!([(); 7].map(|()| next()), [1, 2, 4, 8, 16, 32, 32]);
        let first_second = 95 + (7..36).map(|_| next()).sum::<u128>();
        assert_eq!(first_second, 1023);
        assert_eq!([(); 6].map(|()| next()), [64, 128, 256, 512, 1024, 1024]);
    }
}
