//! [`Waiter`]: a waker that stays registered with a token for as long as the value lives.

use std::task::Waker;

use crate::token::CancelToken;
use crate::token::node::NodeWeak;

/// A waker that the thread that cancels the token calls. Dropping this value removes it.
pub(super) struct Waiter {
    token: NodeWeak,
    key: u64,
}

impl Waiter {
    /// Registers `waker`. Returns `None` if the token is cancelled already.
    pub(super) fn new(token: &CancelToken, waker: Waker) -> Option<Self> {
        // Reads the clock, too: the timer cancels a token whose deadline has passed a moment later.
        if token.is_cancelled() {
            return None;
        }
        token.0.ensure_timer();
        token.0.add_waiter(waker).map(|key| Self {
            token: token.0.downgrade(),
            key,
        })
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(token) = self.token.upgrade() {
            token.remove_waiter(self.key);
        }
    }
}
