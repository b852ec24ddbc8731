//! [`CancelToken`]: the signal.

pub(crate) mod links;
pub(crate) mod node;
mod parents;
mod wait;

use std::borrow::Borrow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::deadline::Deadline;
use crate::error::{Cause, Reason, TimeoutError};
use crate::frame;
use crate::terms::Terms;

use node::{NodeRef, Watch};

pub use wait::{Cancelled, CancelledOwned, Registration};

/// The signal that tells an operation to stop.
///
/// A token fires once, with a [`Cause`], and stays fired. Clones are the same token. A [`child`](Self::child) hears its parent and
/// not the other way round. The token of a call fires at the call's deadline, when its caller goes away, and when anybody who
/// holds it calls [`cancel`](Self::cancel).
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
/// Reading is one atomic load at any depth; a look at the clock comes on top where nobody watches the token's deadline, as in a sync
/// call that runs inline, and in an async one until it waits for something.
#[derive(Clone)]
pub struct CancelToken(pub(crate) NodeRef);

impl CancelToken {
    /// A token of its own, which fires when somebody cancels it.
    #[must_use]
    pub fn new() -> Self {
        Self(NodeRef::new(Terms::None, Watch::Watched, &[]))
    }

    /// A token that never fires by itself and is not linked to anything.
    #[must_use]
    pub fn never() -> Self {
        Self::new()
    }

    /// The token of the call that this code runs in; one that never fires outside any.
    #[must_use]
    pub fn current() -> Self {
        frame::current().map_or_else(Self::never, |outer| outer.token)
    }

    /// A token that fires when this one does, and that can be cancelled alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::below(std::slice::from_ref(&self.0))
    }

    fn below(parents: &[NodeRef]) -> Self {
        Self(NodeRef::new(Terms::None, Watch::Watched, parents))
    }

    /// A token that fires as soon as one of `parents` does, with that one's cause.
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

    /// Fires the token with [`Cause::Cancelled`], unless it has fired before.
    ///
    /// When it returns, every token below reads cancelled, all who waited have been woken, and the callbacks have run, on this
    /// thread; a callback that panics does not keep the others from running.
    pub fn cancel(&self) {
        self.cancel_for(None);
    }

    /// As [`cancel`](Self::cancel), with a reason that errors then give as their [`source`](Error::source).
    pub fn cancel_with(&self, reason: impl Into<Box<dyn Error + Send + Sync>>) {
        self.cancel_for(Some(&reason.into().into()));
    }

    fn cancel_for(&self, reason: Option<&Reason>) {
        for callback in self.0.propagate(Cause::Cancelled, reason) {
            callback.run();
        }
    }

    /// Whether the token has fired.
    #[must_use]
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.cause().is_some()
    }

    /// Why the token has fired, if it has. It never changes again.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.0.cause()
    }

    /// `Ok` until the token fires: the one line for loops, `cancel_token.check()?`.
    ///
    /// # Errors
    ///
    /// Once the token has fired, with its cause and the name of the call that it belongs to.
    pub fn check(&self) -> Result<(), TimeoutError> {
        match self.0.cause() {
            None => Ok(()),
            Some(_) => self.0.error().map_or(Ok(()), Err),
        }
    }

    /// The nearest deadline at which this token fires: its call's, or one from above. A call that has ended in time no longer has
    /// one.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.0.deadline()
    }

    /// How long is left until [`deadline`](Self::deadline): zero once it has passed, `None` where there is none. Made for
    /// `set_read_timeout` and its like.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline().remaining()
    }

    /// Cancels the token when the guard is dropped, also by a panic.
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

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("name", &self.0.with_call_terms(Terms::name))
            .field("cause", &self.cause())
            .finish()
    }
}

/// Cancels its token when dropped; made by [`CancelToken::drop_guard`].
#[derive(Debug)]
pub struct DropGuard {
    token: Option<CancelToken>,
}

impl DropGuard {
    /// Gives the token back, which is then not cancelled.
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
