//! Registers what a cancellation notifies: the caller of the call, wakers and callbacks.

use std::task::Waker;

use crate::sync::lock;
use crate::threads::parking;
use crate::unwind;

use super::super::callback::Callback;
use super::super::links::More;
use super::Head;

impl Head {
    /// Registers the waker of the caller, for a cancellation and for the end of the operation. The
    /// caller reads the state after that.
    pub(crate) fn set_caller_waker(&self, waker: &Waker) {
        parking::replace_waker(&self.links, |links| Some(&mut links.caller_waker), waker);
    }

    /// Removes the waker of a caller that has left.
    pub(crate) fn forget_caller_waker(&self) {
        let caller_waker = lock(&self.links).caller_waker.take();
        unwind::drop_catching(caller_waker);
    }

    /// Takes the waker of the caller, to wake it.
    pub(crate) fn take_caller_waker(&self) -> Option<Waker> {
        lock(&self.links).caller_waker.take()
    }

    /// Wakes the caller of the call that this token belongs to.
    pub(crate) fn wake_caller(&self) {
        if let Some(waker) = self.take_caller_waker() {
            unwind::contain(|| waker.wake());
        }
    }

    /// Registers a waker. Returns `None` if the token is cancelled.
    pub(crate) fn add_waiter(&self, waker: Waker) -> Option<u64> {
        let mut links = lock(&self.links);
        if self.known_cause().is_some() {
            drop(links);
            return None;
        }
        Some(links.more().waiters.insert(Some(waker)))
    }

    /// Replaces a registered waker. Returns `false` if the token is cancelled.
    pub(crate) fn set_waiter(&self, key: u64, waker: &Waker) -> bool {
        // A cancellation removes the entry under the same lock.
        parking::replace_waker(
            &self.links,
            |links| links.more.as_mut()?.waiters.get_mut(key),
            waker,
        )
    }

    pub(crate) fn remove_waiter(&self, key: u64) {
        unwind::drop_catching(self.unlink(|more| more.waiters.remove(key)));
    }

    /// Registers a callback, or returns it if the token is cancelled.
    pub(crate) fn add_callback(&self, callback: Callback) -> Result<u64, Callback> {
        let mut links = lock(&self.links);
        if self.known_cause().is_some() {
            return Err(callback);
        }
        Ok(links.more().callbacks.insert(callback))
    }

    pub(crate) fn remove_callback(&self, key: u64) -> Option<Callback> {
        self.unlink(|more| more.callbacks.remove(key))
    }

    /// Takes an entry out of the links, which are empty once the token is cancelled.
    pub(in crate::token) fn unlink<T>(
        &self,
        take: impl FnOnce(&mut More) -> Option<T>,
    ) -> Option<T> {
        let mut links = lock(&self.links);
        links.more.as_mut().and_then(|more| take(more))
    }
}
