//! [`Registration`]: keeps a listener, a propagator or a callback registered until it is dropped.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// What a registration removes.
pub(crate) trait Registered: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Removes the function. Returns whether that prevents it from running.
    fn remove(&self) -> bool;

    /// As `remove`. If the function is running on another thread, waits until it has returned.
    fn remove_and_wait(&self) -> bool;
}

/// Keeps a function registered. Returned by [`add_listener`](crate::add_listener),
/// [`add_propagator`](crate::add_propagator) and
/// [`CancelToken::on_cancel`](crate::CancelToken::on_cancel).
///
/// Dropping a registration removes the function, and never waits for one that is running. That
/// call of the function finishes, and its thread then drops the function.
///
/// Bind the registration to a name (`let _listener = ..`). With `let _ = ..` it is dropped
/// immediately, and the function with it.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use timeout_runtime::{add_listener, within_blocking};
///
/// let (sender, names) = mpsc::channel();
/// let listener = add_listener(move |event| sender.send(event.name).unwrap());
/// within_blocking(Duration::from_secs(60), |_token| ())?; // the listener receives this event
/// drop(listener);
/// within_blocking(Duration::from_secs(60), |_token| ())?;
/// assert_eq!(names.try_iter().count(), 1);
/// # Ok::<(), timeout_runtime::TimeoutError>(())
/// ```
#[must_use = "dropping the registration removes the function; bind it, as in `let _listener = ..`, or call `forget()`"]
pub struct Registration(Option<Box<dyn Registered>>);

impl Registration {
    pub(crate) fn new(registered: impl Registered + 'static) -> Self {
        Self(Some(Box::new(registered)))
    }

    /// A registration of a function that has run already.
    pub(crate) fn over() -> Self {
        Self(None)
    }

    /// Removes the function, which does not start to run any more. Does not wait for one that is
    /// running.
    ///
    /// Returns `true`, or `false` for a callback that is running, has run, or was dropped with its
    /// token.
    ///
    /// ```
    /// use timeout_runtime::CancelToken;
    ///
    /// let token = CancelToken::new();
    /// let rollback = token.on_cancel(|| unreachable!("the transaction is committed"));
    /// assert!(rollback.unregister());
    ///
    /// token.cancel();
    /// let too_late = token.on_cancel(|| println!("rolled back")); // runs immediately
    /// assert!(!too_late.unregister());
    /// ```
    #[allow(clippy::must_use_candidate)] // Mostly called for its effect.
    pub fn unregister(mut self) -> bool {
        self.remove()
    }

    /// As [`unregister`](Self::unregister), and waits until a running function has returned. When
    /// this returns, the function is not running and never will.
    ///
    /// Inside the function itself, and in code that runs on its behalf, this returns immediately.
    /// For a propagator, the function is the one that captures.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::sync::Arc;
    /// use timeout_runtime::CancelToken;
    ///
    /// let in_use = Arc::new(AtomicBool::new(false));
    /// let token = CancelToken::new();
    /// let registration = token.on_cancel({
    ///     let in_use = Arc::clone(&in_use);
    ///     move || {
    ///         in_use.store(true, Ordering::SeqCst);
    ///         in_use.store(false, Ordering::SeqCst);
    ///     }
    /// });
    /// token.cancel();
    /// registration.unregister_and_wait();
    /// assert!(!in_use.load(Ordering::SeqCst));
    /// ```
    #[allow(clippy::must_use_candidate)] // Mostly called for its effect.
    pub fn unregister_and_wait(mut self) -> bool {
        self.0
            .take()
            .is_some_and(|registered| registered.remove_and_wait())
    }

    /// Keeps the function registered: a listener or a propagator until the process ends, a callback
    /// for as long as its token exists.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use timeout_runtime::CancelToken;
    ///
    /// let (sender, receiver) = mpsc::channel();
    /// let shutdown = CancelToken::new();
    /// shutdown.on_cancel(move || sender.send("closed").unwrap()).forget();
    /// shutdown.cancel();
    /// assert_eq!(receiver.recv(), Ok("closed"));
    /// ```
    pub fn forget(mut self) {
        self.0 = None;
    }

    fn remove(&mut self) -> bool {
        self.0.take().is_some_and(|registered| registered.remove())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.remove();
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}
