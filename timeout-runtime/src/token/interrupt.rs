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

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::outcome::TimeoutError;
use crate::sync::{Condvar, Mutex, lock};
use crate::threads::background;
use crate::time::Tick;
use crate::timer::{Alarm, Key};
use crate::unwind;

use super::CancelToken;
use super::node::TIMER;

/// The pause after the first stop. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause. A stop that came between two statements is repeated after it.
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

impl CancelToken {
    /// Runs blocking `work` on this thread, and calls `stop` when the token is cancelled meanwhile.
    ///
    /// `stop` makes `work` return: it cancels a query, shuts a socket down or closes a channel. It
    /// runs on a background thread, again and again with growing pauses of at most 32 ms, until
    /// `work` has returned. So a stop also takes effect if it is lost while nothing runs, as the
    /// cancel request of a database is between two statements.
    ///
    /// This function does not return while `stop` runs, and `stop` does not run afterwards. So a
    /// connection can be used again. If this returns a value, `stop` has not run at all. A panic in
    /// `stop` is caught. What `stop` returns is dropped.
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
    /// may be incomplete.
    ///
    /// # Panics
    ///
    /// A panic of `work` passes through, after a running `stop` has returned.
    pub fn interrupt_with<T, S>(
        &self,
        mut stop: impl FnMut() -> S + Send + 'static,
        work: impl FnOnce() -> T,
    ) -> Result<T, TimeoutError> {
        self.check()?;
        let interruption = Interruption::new(Box::new(move || drop(stop())));
        let registration = self.register({
            let interruption = Arc::clone(&interruption);
            move || interruption.stop()
        });
        let output = {
            let _end = EndOnDrop(&interruption);
            // On a token that was cancelled meanwhile, the stop has come before the work.
            self.check()?;
            work()
        };
        drop(registration);
        self.check().map(|()| output)
    }
}

type Stop = Box<dyn FnMut() + Send>;

/// One call of `interrupt_with`.
struct Interruption {
    state: Mutex<InterruptionState>,
    is_idle: Condvar,
    /// The thread that works.
    worker: ThreadId,
}

struct InterruptionState {
    /// `None` while the function runs.
    stop: Option<Stop>,
    /// The work has returned.
    is_over: bool,
    /// The next pause.
    pause: Duration,
    /// Ends the current pause.
    alarm: Option<Key>,
}

impl Interruption {
    fn new(stop: Stop) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(InterruptionState {
                stop: Some(stop),
                is_over: false,
                pause: FIRST_PAUSE,
                alarm: None,
            }),
            is_idle: Condvar::default(),
            worker: thread::current().id(),
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
        state.alarm = None;
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
        let pause = state.pause;
        state.pause = (2 * pause).min(LONGEST_PAUSE);
        let alarm = Alarm::Wake(Some(Waker::from(Arc::clone(self))));
        // Under the lock, so that an alarm that rings already cannot be taken for the next one.
        state.alarm = TIMER.arm(Tick::now().plus(pause), alarm);
        state.alarm.is_none().then_some(pause)
    }

    /// The work has returned: waits for a running function, and keeps it from running again.
    fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        while state.stop.is_none() {
            state = self.is_idle.wait(&self.state, state, None);
        }
        let alarm = state.alarm.take();
        let stop = state.stop.take();
        drop(state);
        if let Some(alarm) = alarm {
            TIMER.disarm(alarm);
        }
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
