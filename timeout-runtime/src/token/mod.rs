//! [`CancelToken`]: tells an operation to stop: at its deadline, when its caller leaves, or when
//! the token or one above it is cancelled.

mod alarm;
mod blocking;
mod callback;
mod caller_alarm;
pub(crate) mod checks;
mod expiry;
mod interrupt;
pub(crate) mod links;
pub(crate) mod node;
mod owner;
mod parents;
mod wait;

use std::borrow::Borrow;
use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::outcome::{Cause, Reason, TimeoutError};
use crate::time::Deadline;

use node::{NodeRef, Watch};

pub(crate) use caller_alarm::CallerAlarm;
pub(crate) use owner::Owner;
#[cfg(feature = "tower")]
pub(crate) use wait::Waiting;

/// Tells an operation to stop.
///
/// A token is cancelled once, with a [`Cause`], and stays cancelled. Clones are the same token.
/// Cancelling a token cancels its [children](Self::child), but not its parent. The token of a call
/// is cancelled at the call's deadline, when the caller goes away, and by [`cancel`](Self::cancel).
///
/// ```
/// use timeout_runtime::CancelToken;
///
/// let request = CancelToken::new();
/// let query = request.child();
/// query.cancel();
/// assert!(query.is_cancelled() && !request.is_cancelled());
///
/// let other = request.child();
/// request.cancel();
/// assert!(other.check().unwrap_err().is_cancelled());
/// ```
///
/// Reading a token is one atomic load at any depth. Where no other thread watches its deadline, a
/// read also reads the clock: in a sync call that runs inline, and in an async call until it waits.
#[derive(Clone)]
pub struct CancelToken(pub(crate) NodeRef);

impl CancelToken {
    /// A token without a parent and without a deadline.
    #[must_use]
    pub fn new() -> Self {
        Self::below(&[])
    }

    /// A token that is cancelled with this one, and can also be cancelled alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::below(std::slice::from_ref(&self.0))
    }

    fn below(parents: &[NodeRef]) -> Self {
        Self(NodeRef::new(Owner::None, Watch::Watched, parents))
    }

    /// A token that is cancelled with the first of `parents`, and with its cause.
    ///
    /// ```
    /// use timeout_runtime::CancelToken;
    ///
    /// let (shutdown, request) = (CancelToken::new(), CancelToken::new());
    /// let either = CancelToken::linked([&shutdown, &request]);
    /// shutdown.cancel();
    /// assert!(either.is_cancelled() && !request.is_cancelled());
    /// ```
    #[must_use]
    pub fn linked<T: Borrow<Self>>(parents: impl IntoIterator<Item = T>) -> Self {
        let parents: Vec<NodeRef> = parents
            .into_iter()
            .map(|token| token.borrow().0.clone())
            .collect();
        Self::below(&parents)
    }

    /// Cancels the token with [`Cause::Cancelled`], unless it is cancelled already.
    ///
    /// When this returns, all tokens below are cancelled, and all waiting threads and tasks have
    /// been woken. Callbacks run on background threads, and this function does not wait for them:
    /// see [`on_cancel`](Self::on_cancel).
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use timeout_runtime::CancelToken;
    ///
    /// let token = CancelToken::new();
    /// let helper = thread::spawn({
    ///     let token = token.clone();
    ///     move || token.sleep(Duration::from_secs(600))
    /// });
    /// token.cancel();
    /// assert!(helper.join().unwrap().unwrap_err().is_cancelled()); // without the ten minutes
    /// ```
    pub fn cancel(&self) {
        self.0.cancel(Cause::Cancelled, None);
    }

    /// As [`cancel`](Self::cancel), with a reason: the [`source`](Error::source) of errors from
    /// here on. On a token that is cancelled already, the reason is dropped.
    ///
    /// ```
    /// use std::error::Error;
    /// use timeout_runtime::CancelToken;
    ///
    /// let server = CancelToken::new();
    /// let request = server.child();
    /// server.cancel_with("the disk is full");
    /// let error = request.check().unwrap_err();
    /// assert_eq!(error.source().unwrap().to_string(), "the disk is full");
    /// ```
    pub fn cancel_with(&self, reason: impl Into<Box<dyn Error + Send + Sync>>) {
        self.0.cancel(Cause::Cancelled, Some(&Reason::new(reason)));
    }

    /// Whether the token is cancelled.
    ///
    /// ```
    /// use timeout_runtime::CancelToken;
    ///
    /// /// Returns the rows so far if it is cancelled.
    /// fn squares(rows: &[u64], token: &CancelToken) -> Vec<u64> {
    ///     rows.iter().take_while(|_| !token.is_cancelled()).map(|row| row * row).collect()
    /// }
    ///
    /// let token = CancelToken::new();
    /// assert_eq!(squares(&[2, 3], &token), [4, 9]);
    /// token.cancel();
    /// assert!(squares(&[2, 3], &token).is_empty());
    /// ```
    #[must_use]
    #[inline]
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn is_cancelled(&self) -> bool {
        checks::record(self);
        self.0.cause().is_some()
    }

    /// Why the token is cancelled, if it is. A cause never changes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{CallContext, CancelToken, Cause, Deadline};
    ///
    /// let passed = Deadline::after(Duration::ZERO);
    /// let token = CallContext::detached().with_deadline(passed).run(CancelToken::current);
    /// assert_eq!(token.cause(), Some(Cause::DeadlineExceeded));
    /// token.cancel();
    /// assert_eq!(token.cause(), Some(Cause::DeadlineExceeded));
    /// assert_eq!(CancelToken::new().cause(), None);
    /// ```
    #[must_use]
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn cause(&self) -> Option<Cause> {
        checks::record(self);
        self.0.cause()
    }

    /// Returns an error once the token is cancelled. Made for loops: `cancel_token.check()?`.
    ///
    /// An abandoned operation that returns an error after it has received this one is reported as
    /// [`AbandonedWorkerStopped`](crate::EventKind::AbandonedWorkerStopped), and not as failed.
    ///
    /// ```
    /// use timeout_runtime::{CancelToken, TimeoutError};
    ///
    /// fn sum(rows: &[u64], token: &CancelToken) -> Result<u64, TimeoutError> {
    ///     let mut sum = 0;
    ///     for row in rows {
    ///         token.check()?;
    ///         sum += row;
    ///     }
    ///     Ok(sum)
    /// }
    ///
    /// let token = CancelToken::new();
    /// assert_eq!(sum(&[1, 2, 3], &token), Ok(6));
    /// token.cancel();
    /// assert!(sum(&[1, 2, 3], &token).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error with the cause and the name of the token's call if the token is cancelled.
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn check(&self) -> Result<(), TimeoutError> {
        checks::record(self);
        self.result()
    }

    /// As `check`, for code of this crate.
    pub(crate) fn result(&self) -> Result<(), TimeoutError> {
        match self.0.cause() {
            None => Ok(()),
            Some(_) => self.0.error().map_or(Ok(()), Err),
        }
    }

    /// The nearest deadline that cancels this token: that of its call or of a token above. A call
    /// that has ended in time has no deadline of its own any more.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{CallContext, CancelToken, Deadline};
    ///
    /// let request = Deadline::after(Duration::from_secs(60));
    /// let token = CallContext::detached().with_deadline(request).run(CancelToken::current);
    /// assert_eq!(token.child().deadline(), request);
    /// assert_eq!(CancelToken::new().deadline(), Deadline::never());
    /// ```
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.0.deadline()
    }

    /// The time that is left until [`deadline`](Self::deadline): zero once it has passed, `None`
    /// without one. Made for `set_read_timeout` and the like, which return an error for zero.
    ///
    /// ```
    /// use std::net::{TcpListener, TcpStream};
    /// use std::time::Duration;
    /// use timeout_runtime::within_blocking;
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let stream = TcpStream::connect(listener.local_addr()?)?;
    /// let limit = Duration::from_secs(60);
    /// let timeout = within_blocking(limit, move |token| {
    ///     stream.set_read_timeout(token.remaining())?;
    ///     stream.read_timeout()
    /// })??;
    /// assert!(timeout.is_some_and(|timeout| timeout <= limit));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline().remaining()
    }

    /// How long is left until [`deadline`](Self::deadline), at most `max`. For functions that take
    /// a timeout and not a token, such as `recv_timeout`.
    ///
    /// Zero once the deadline has passed; `max` if the token has no deadline. It ignores a
    /// cancellation by other means: [`check`](Self::check) reports that.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{CallContext, CancelToken, Deadline};
    ///
    /// let max = Duration::from_secs(5);
    /// assert_eq!(CancelToken::new().remaining_or(max), max);
    ///
    /// let context = CallContext::detached().with_deadline(Deadline::after(Duration::from_secs(1)));
    /// context.run(|| assert!(CancelToken::current().remaining_or(max) <= Duration::from_secs(1)));
    /// ```
    #[must_use]
    pub fn remaining_or(&self, max: Duration) -> Duration {
        self.remaining().map_or(max, |left| left.min(max))
    }

    /// Cancels the token when the returned guard is dropped, also during a panic.
    ///
    /// ```
    /// use timeout_runtime::CancelToken;
    ///
    /// let helper = CancelToken::new();
    /// {
    ///     let _stop_helper = helper.drop_guard();
    /// }
    /// assert!(helper.is_cancelled());
    /// ```
    #[must_use = "dropping the guard cancels the token at once"]
    pub fn drop_guard(&self) -> DropGuard {
        DropGuard {
            token: Some(self.clone()),
        }
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

/// Clones are equal; a [`child`](CancelToken::child) and a [`linked`](CancelToken::linked) token
/// are different tokens. A cancellation changes neither equality nor hash, so a token can be the
/// key of a map. Clippy's `mutable_key_type` does not know that: allow it there.
impl PartialEq for CancelToken {
    fn eq(&self, other: &Self) -> bool {
        self.0.address() == other.0.address()
    }
}

impl Eq for CancelToken {}

impl Hash for CancelToken {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.address().hash(state);
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("name", &self.0.name())
            .field("cause", &self.cause())
            .finish()
    }
}

/// Cancels its token when dropped. Created by [`CancelToken::drop_guard`].
#[derive(Debug)]
pub struct DropGuard {
    token: Option<CancelToken>,
}

impl DropGuard {
    /// Returns the token without cancelling it.
    ///
    /// ```
    /// use timeout_runtime::CancelToken;
    ///
    /// let helper = CancelToken::new();
    /// let stop_helper = helper.drop_guard();
    /// let rows: u32 = "12".parse()?; // an error would stop the helper
    /// let helper = stop_helper.disarm();
    /// assert!(rows == 12 && !helper.is_cancelled());
    /// # Ok::<(), std::num::ParseIntError>(())
    /// ```
    #[must_use]
    pub fn disarm(mut self) -> CancelToken {
        self.token.take().unwrap_or_default()
    }
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            token.cancel();
        }
    }
}

#[cfg(all(test, timeout_shuttle))]
mod models;
