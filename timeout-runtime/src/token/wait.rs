//! Waits for the cancellation of a token: in async code, in blocking code, and by callback.

use std::borrow::Borrow;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::outcome::{Cause, TimeoutError};
use crate::registry::{Registered, Registration};
use crate::threads::parking::CurrentParker;
use crate::time::{Clock, Tick};

use super::callback::{Callback, TakeBack};
use super::node::NodeWeak;
use super::{CancelToken, checks};

impl CancelToken {
    /// Waits until the token is cancelled.
    ///
    /// Cancel safe: a dropped future leaves nothing behind, and the next one sees a cancellation
    /// that came in between.
    ///
    /// ```
    /// use timeout_runtime::CancelToken;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let shutdown = CancelToken::new();
    /// shutdown.cancel();
    /// let request = tokio::select! {
    ///     request = std::future::pending::<u32>() => Some(request),
    ///     () = shutdown.cancelled() => None,
    /// };
    /// assert_eq!(request, None);
    /// # }
    /// ```
    pub fn cancelled(&self) -> impl Future<Output = ()> + Unpin + Send {
        Waiting::new(self)
    }

    /// As [`cancelled`](Self::cancelled), where the token cannot be borrowed.
    ///
    /// ```
    /// use timeout_runtime::CancelToken;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let shutdown = CancelToken::new();
    /// let server = tokio::spawn({
    ///     let stopped = shutdown.clone().cancelled_owned();
    ///     async move {
    ///         stopped.await;
    ///         "drained"
    ///     }
    /// });
    /// shutdown.cancel();
    /// assert_eq!(server.await.unwrap(), "drained");
    /// # }
    /// ```
    pub fn cancelled_owned(self) -> impl Future<Output = ()> + Unpin + Send {
        Waiting::new(self)
    }

    /// Runs `future` until the token is cancelled; `None` if that came first. With a token that is
    /// cancelled already, `future` is not polled.
    ///
    /// Cancel safe if `future` is.
    ///
    /// ```
    /// use timeout_runtime::CancelToken;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let token = CancelToken::new();
    /// assert_eq!(token.run_until_cancelled(async { 7 }).await, Some(7));
    /// token.cancel();
    /// assert_eq!(token.run_until_cancelled(async { 7 }).await, None);
    /// # }
    /// ```
    pub async fn run_until_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        if self.is_cancelled() {
            return None;
        }
        let mut future = pin!(future);
        let mut cancelled = pin!(self.cancelled());
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            cancelled.as_mut().poll(context).map(|()| None)
        })
        .await
    }

    /// As [`run_until_cancelled`](Self::run_until_cancelled), for spawned tasks: the returned
    /// future borrows nothing.
    ///
    /// Cancel safe if `future` is.
    ///
    /// ```
    /// use timeout_runtime::CancelToken;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let token = CancelToken::new();
    /// let task = tokio::spawn(token.clone().run_until_cancelled_owned(std::future::pending::<()>()));
    /// token.cancel();
    /// assert_eq!(task.await.unwrap(), None);
    /// # }
    /// ```
    pub async fn run_until_cancelled_owned<F: Future>(self, future: F) -> Option<F::Output> {
        self.run_until_cancelled(future).await
    }

    /// Registers `callback`, which runs when the token is cancelled, or immediately if it is
    /// cancelled already.
    pub(crate) fn register(&self, callback: impl FnOnce() + Send + 'static) -> Registration {
        self.try_register(callback).unwrap_or_else(|callback| {
            callback.run();
            Registration::over()
        })
    }

    /// As `register`. Returns the callback if the token is cancelled already.
    pub(super) fn try_register(
        &self,
        callback: impl FnOnce() + Send + 'static,
    ) -> Result<Registration, Callback> {
        self.0.ensure_timer();
        let callback = Callback::new(callback);
        let take_back = callback.downgrade();
        let key = self.0.add_callback(callback)?;
        Ok(Registration::new(RegisteredCallback {
            node: self.0.downgrade(),
            key,
            take_back,
        }))
    }

    /// Blocks the thread for `duration`, or until the token is cancelled. With [`Duration::MAX`],
    /// only a cancellation ends the wait.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::CancelToken;
    ///
    /// let token = CancelToken::new();
    /// assert!(token.sleep(Duration::from_millis(1)).is_ok());
    /// token.cancel();
    /// assert!(token.sleep(Duration::from_secs(600)).unwrap_err().is_cancelled());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of [`check`](Self::check) if the token is cancelled first.
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn sleep(&self, duration: Duration) -> Result<(), TimeoutError> {
        match self.wait_timeout(duration) {
            None => Ok(()),
            Some(_) => self.0.error().map_or(Ok(()), Err),
        }
    }

    /// Blocks the thread until the token is cancelled, for `duration` at most. Returns the cause,
    /// or `None` if the time passed first. [`Duration::MAX`] waits without a bound.
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use timeout_runtime::{CancelToken, Cause};
    ///
    /// let shutdown = CancelToken::new();
    /// let cleaner = thread::spawn({
    ///     let shutdown = shutdown.clone();
    ///     move || loop {
    ///         if let Some(cause) = shutdown.wait_timeout(Duration::from_secs(600)) {
    ///             return cause;
    ///         }
    ///         println!("removing old files");
    ///     }
    /// });
    /// shutdown.cancel();
    /// assert_eq!(cleaner.join().unwrap(), Cause::Cancelled);
    /// ```
    #[must_use = "tells whether the token is cancelled"]
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn wait_timeout(&self, duration: Duration) -> Option<Cause> {
        checks::record(self);
        self.wait_on(Clock::of_thread(), duration)
    }

    /// As `wait_timeout`, for a `duration` on `clock`.
    pub(crate) fn wait_on(&self, clock: Clock, duration: Duration) -> Option<Cause> {
        let (until, order) = (clock.now().plus(duration), clock.order());
        let mut waiting = Waiting::new(self);
        let parker = CurrentParker::get();
        loop {
            if let Some(cause) = waiting.register(parker.waker()) {
                return Some(cause);
            }
            if clock.has_reached(until) {
                return None;
            }
            // If no timer cancels the token at its deadline, this thread does.
            let own = self.0.unwatched_deadline(clock);
            let look_again = if self.0.ensure_timers() {
                Tick::NEVER
            } else {
                clock.now().plus(POLL_INTERVAL)
            };
            parker.park_on(clock, until.min(own).min(look_again), order);
        }
    }
}

/// Poll interval when no timer thread is available.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A registered wait. Dropping it removes the registration.
pub(crate) struct Waiting<T: Borrow<CancelToken>> {
    token: T,
    key: Option<u64>,
}

impl<T: Borrow<CancelToken>> Waiting<T> {
    pub(crate) fn new(token: T) -> Self {
        Self { token, key: None }
    }

    #[cfg(feature = "tower")]
    pub(crate) fn token(&self) -> &CancelToken {
        self.token.borrow()
    }

    /// Registers `waker` before it reads the token, so no cancellation is missed.
    fn register(&mut self, waker: &Waker) -> Option<Cause> {
        let node = &self.token.borrow().0;
        if let Some(cause) = node.cause() {
            return Some(cause);
        }
        let waits = if let Some(key) = self.key {
            node.set_waiter(key, waker)
        } else {
            self.key = node.add_waiter(waker.clone());
            self.key.is_some()
        };
        if waits { None } else { node.cause() }
    }
}

impl<T: Borrow<CancelToken> + Unpin> Future for Waiting<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.token.borrow().0.ensure_timer();
        if self.register(context.waker()).is_some() {
            return Poll::Ready(());
        }
        if !self.token.borrow().0.ensure_timers() {
            // No timer thread is available: poll again after other tasks.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<T: Borrow<CancelToken>> Drop for Waiting<T> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.token.borrow().0.remove_waiter(key);
        }
    }
}

/// A callback in the links of a token.
struct RegisteredCallback {
    node: NodeWeak,
    key: u64,
    take_back: TakeBack,
}

impl RegisteredCallback {
    fn unlink(&self) {
        if let Some(node) = self.node.upgrade() {
            drop(node.remove_callback(self.key));
        }
    }
}

impl Registered for RegisteredCallback {
    fn remove(&self) -> bool {
        // After a cancellation the callback may still wait for a thread.
        let is_taken_back = self.take_back.take_back();
        self.unlink();
        is_taken_back
    }

    fn remove_and_wait(&self) -> bool {
        let is_taken_back = self.take_back.take_back_and_wait();
        self.unlink();
        is_taken_back
    }
}
