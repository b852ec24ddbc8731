//! Links [`CancelToken`]s with `CancellationToken`s of [`tokio-util`](https://docs.rs/tokio-util),
//! in both directions.
//!
//! `CancelToken::from(&theirs)` follows a `CancellationToken`, and `LinkedToken::from(&ours)`
//! follows a [`CancelToken`]. A link needs no task, no thread and no runtime.
//!
//! ```
//! use timeout_runtime::integrations::tokio_util::LinkedToken;
//! use timeout_runtime::{CancelToken, TimeoutError, timeout};
//! use tokio_util::sync::CancellationToken;
//!
//! #[timeout(name = "serve", secs = 5)]
//! fn serve(cancel_token: &CancelToken) -> Result<(), TimeoutError> {
//!     cancel_token.sleep(std::time::Duration::MAX)
//! }
//!
//! let shutdown = CancellationToken::new();
//! let upstream = CancelToken::from(&shutdown);
//! shutdown.cancel();
//! assert!(serve(&upstream).unwrap_err().is_cancelled());
//!
//! let request = CancelToken::new();
//! let linked = LinkedToken::from(&request);
//! request.cancel();
//! assert!(linked.is_cancelled());
//! ```

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use ::tokio_util::sync::CancellationToken;

use crate::outcome::Cause;
use crate::token::CancelToken;
use crate::token::node::NodeWeak;

use super::waiter::Waiter;

impl From<&CancellationToken> for CancelToken {
    /// Returns a token that is cancelled when `theirs` is cancelled.
    ///
    /// Cancelling the returned token does not cancel `theirs`. When `theirs.cancel()` returns, the
    /// token and all its children are cancelled; their callbacks run on background threads.
    ///
    /// The link keeps `theirs` alive until the returned token and all its children are dropped.
    /// Then the link frees its memory, even if `theirs` lives on.
    fn from(theirs: &CancellationToken) -> Self {
        let ours = Self::new();
        let link = Link {
            theirs: theirs.clone(),
            ours: ours.0.downgrade(),
        };
        let waker = Waker::from(Arc::new(link));
        let mut cancelled = Box::pin(theirs.clone().cancelled_owned());
        // `theirs` calls the waker when it is cancelled. The waker stays registered until the
        // future is dropped. Our token holds the future until it is cancelled or dropped.
        if cancelled
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            ours.cancel();
        } else {
            let held = Waker::from(Arc::new(Held(Mutex::new(cancelled))));
            ours.0.add_waiter(held);
        }
        ours
    }
}

/// A waiter of our token that only keeps a future. The lock is never taken: it makes the future
/// `Sync`, as wakers must be.
struct Held<F>(#[allow(dead_code)] Mutex<F>);

impl<F: Send> Wake for Held<F> {
    fn wake(self: Arc<Self>) {}
}

/// A waker that cancels `ours` when `theirs` is cancelled.
struct Link {
    theirs: CancellationToken,
    // Weak, because `theirs` holds this waker and our token holds `theirs`.
    ours: NodeWeak,
}

impl Wake for Link {
    fn wake(self: Arc<Self>) {
        if !self.theirs.is_cancelled() {
            return;
        }
        if let Some(ours) = self.ours.upgrade() {
            ours.cancel(Cause::Cancelled, None);
        }
    }
}

/// A `CancellationToken` that is linked to a [`CancelToken`]: `LinkedToken::from(&ours)`.
///
/// Dropping this value removes the link. Clones of the `CancellationToken` keep their state.
#[must_use = "dropping the value removes the link between the tokens"]
pub struct LinkedToken {
    theirs: CancellationToken,
    /// `None` if our token was cancelled before.
    #[allow(dead_code)] // Dropping it removes the waiter.
    link: Option<Waiter>,
}

impl From<&CancelToken> for LinkedToken {
    /// Returns a `CancellationToken` that is cancelled when `ours` is cancelled, also by a
    /// deadline. The thread that cancels `ours` cancels the returned token too, before
    /// [`CancelToken::cancel`] returns.
    ///
    /// Cancelling the returned token does not cancel `ours`.
    fn from(ours: &CancelToken) -> Self {
        let theirs = CancellationToken::new();
        // A waiter and not a callback, which would run on another thread a moment later.
        let link = Waiter::new(ours, Waker::from(Arc::new(CancelTheirs(theirs.clone()))));
        if link.is_none() {
            theirs.cancel();
        }
        Self { theirs, link }
    }
}

/// A waker that cancels a `CancellationToken`.
struct CancelTheirs(CancellationToken);

impl Wake for CancelTheirs {
    fn wake(self: Arc<Self>) {
        self.0.cancel();
    }
}

impl Deref for LinkedToken {
    type Target = CancellationToken;

    fn deref(&self) -> &CancellationToken {
        &self.theirs
    }
}

impl fmt::Debug for LinkedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LinkedToken").field(&self.theirs).finish()
    }
}
