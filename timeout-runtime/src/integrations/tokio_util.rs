//! Tokens of [`tokio-util`](https://docs.rs/tokio-util): a `CancellationToken` stops calls, and a [`CancelToken`] stops what waits for a `CancellationToken`.
//!
//! Neither way takes a task, a thread or a runtime.
//!
//! ```
//! use timeout_runtime::integrations::tokio_util;
//! use timeout_runtime::{CancelToken, TimeoutError, timeout};
//! use ::tokio_util::sync::CancellationToken;
//!
//! #[timeout(name = "serve", secs = 5)]
//! fn serve(cancel_token: &CancelToken) -> Result<(), TimeoutError> {
//!     cancel_token.sleep(std::time::Duration::MAX)
//! }
//!
//! let shutdown = CancellationToken::new();
//! let stops_calls = tokio_util::from_tokio(&shutdown);
//! shutdown.cancel();
//! assert!(serve(&stops_calls).unwrap_err().is_cancelled());
//!
//! let request = CancelToken::new();
//! let stops_tasks = tokio_util::to_tokio(&request);
//! request.cancel();
//! assert!(stops_tasks.is_cancelled());
//! ```

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use ::tokio_util::sync::CancellationToken;

use crate::error::Cause;
use crate::token::node::NodeWeak;
use crate::token::{CancelToken, Registration};

/// A token that fires when `theirs` is cancelled, and that can be cancelled alone.
///
/// It and every token below read cancelled when `theirs.cancel()` returns; callbacks run on a worker. The link lasts as long as the token, or one below, is kept, and keeps
/// `theirs`. After that nothing of it is left, however long others keep `theirs`.
#[must_use]
pub fn from_tokio(theirs: &CancellationToken) -> CancelToken {
    let ours = CancelToken::new();
    let fires = Fires {
        theirs: theirs.clone(),
        ours: ours.0.downgrade(),
    };
    let waker = Waker::from(Arc::new(fires));
    let mut cancelled = Box::pin(theirs.clone().cancelled_owned());
    // The waker is the callback. It stays registered for as long as the future is kept, which is as long as our token.
    if cancelled
        .as_mut()
        .poll(&mut Context::from_waker(&waker))
        .is_ready()
    {
        ours.cancel();
    } else {
        ours.on_cancel(move || drop(cancelled)).forget();
    }
    ours
}

struct Fires {
    theirs: CancellationToken,
    // Their token keeps the waker: to keep ours in it would be a circle.
    ours: NodeWeak,
}

impl Wake for Fires {
    fn wake(self: Arc<Self>) {
        if !self.theirs.is_cancelled() {
            return;
        }
        if let Some(ours) = self.ours.upgrade() {
            ours.cancel(Cause::Cancelled, None);
        }
    }
}

/// A token of tokio-util's that is cancelled when `ours` fires, at a deadline too, and that can be cancelled alone.
///
/// By [`CancelToken::cancel`] it is cancelled on that thread; by a deadline, or by a token of theirs that `ours` was made [from](from_tokio), from a worker, a moment later.
pub fn to_tokio(ours: &CancelToken) -> LinkedToken {
    let theirs = CancellationToken::new();
    let cancels = theirs.clone();
    LinkedToken {
        theirs,
        link: ours.on_cancel(move || cancels.cancel()),
    }
}

/// A `CancellationToken` that hears a [`CancelToken`], for as long as this value is kept; made by [`to_tokio`]. When it is dropped, clones of the token inside
/// stay as they are then, and nothing is left with the other one.
#[must_use = "the token hears the other one only as long as this value is kept"]
pub struct LinkedToken {
    theirs: CancellationToken,
    #[allow(dead_code)] // It is kept, no more.
    link: Registration,
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
