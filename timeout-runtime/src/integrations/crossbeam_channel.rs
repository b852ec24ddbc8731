//! [`CancelToken::done`]: a channel of [`crossbeam-channel`](https://docs.rs/crossbeam-channel)
//! that closes when a token is cancelled, for `select!`.
//!
//! It is the `ctx.Done()` of Go.
//!
//! ```
//! use crossbeam_channel::{Receiver, select, unbounded};
//! use timeout_runtime::{TimeoutError, timeout};
//!
//! #[timeout(name = "total", ms = ms)]
//! fn total(prices: Receiver<u32>, fees: Receiver<u32>, ms: u64) -> Result<u32, TimeoutError> {
//!     let done = cancel_token.done();
//!     let mut total = 0;
//!     while total < 100 {
//!         select! {
//!             recv(prices) -> price => total += price.unwrap_or(100),
//!             recv(fees) -> fee => total += fee.unwrap_or(100),
//!             recv(done) -> _ => cancel_token.check()?,
//!         }
//!     }
//!     Ok(total)
//! }
//!
//! let (send_price, prices) = unbounded();
//! let (send_fee, fees) = unbounded();
//! send_price.send(95).unwrap();
//! send_fee.send(7).unwrap();
//! assert_eq!(total(prices.clone(), fees.clone(), 60_000)?, 102);
//!
//! assert!(total(prices, fees, 50).unwrap_err().is_timed_out());
//! # Ok::<(), TimeoutError>(())
//! ```

use std::convert::Infallible;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use ::crossbeam_channel::{Receiver, Sender, bounded};

use crate::sync::lock;
use crate::token::CancelToken;

use super::waiter::Waiter;

impl CancelToken {
    /// Returns a channel that closes when the token is cancelled, also by a deadline.
    ///
    /// The channel never carries a message. When it closes, `recv(done)` in a `select!` is ready,
    /// with an error. `select!` chooses among all ready operations at random, so a value can still
    /// be received after the cancellation.
    ///
    /// Call this once before a loop: each call creates a channel, and dropping the returned
    /// [`Done`] removes it from the token.
    ///
    /// See [the module](crate::integrations::crossbeam_channel) for an example.
    pub fn done(&self) -> Done {
        let (sender, channel) = bounded(0);
        let close = Arc::new(Close(Mutex::new(Some(sender))));
        let waiter = Waiter::new(self, Waker::from(close));
        Done {
            channel,
            token: self.clone(),
            waiter,
        }
    }
}

/// A channel that closes when its token is cancelled. Created by [`CancelToken::done`].
///
/// This value keeps the token alive, and dropping it closes the channel. So a clone of the receiver
/// closes when its token is cancelled or when this value is dropped, whichever is first.
#[must_use = "dropping the value closes the channel"]
pub struct Done {
    channel: Receiver<Infallible>,
    // A token that is dropped would not be cancelled by those above it any more.
    token: CancelToken,
    /// `None` if the token was cancelled before.
    #[allow(dead_code)] // Dropping it removes the waker, and with it the sender.
    waiter: Option<Waiter>,
}

impl Deref for Done {
    type Target = Receiver<Infallible>;

    fn deref(&self) -> &Receiver<Infallible> {
        &self.channel
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Done")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// A waker that closes a channel, by dropping its only sender.
struct Close(Mutex<Option<Sender<Infallible>>>);

impl Wake for Close {
    fn wake(self: Arc<Self>) {
        let sender = lock(&self.0).take();
        drop(sender);
    }
}
