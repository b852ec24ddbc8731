//! Who waits for a signal: the caller of the token's call, wakers and callbacks.

use std::task::Waker;

use crate::sync::lock;
use crate::{parking, unwind};

use super::super::links::{Callback, More};
use super::Head;

impl Head {
    /// Has the signal, and the operation's end, wake `waker`. To be called before each look.
    pub(crate) fn set_owner(&self, waker: &Waker) {
        parking::store(&self.links, |links| Some(&mut links.owner), waker);
    }

    /// The caller has gone, and is not to be woken any more.
    pub(crate) fn forget_owner(&self) {
        let owner = lock(&self.links).owner.take();
        unwind::dispose(owner);
    }

    /// The waker of the caller, who is about to be woken.
    pub(crate) fn take_owner(&self) -> Option<Waker> {
        lock(&self.links).owner.take()
    }

    /// Wakes the caller of the call that this token belongs to.
    pub(crate) fn wake_owner(&self) {
        if let Some(waker) = self.take_owner() {
            unwind::contain(|| waker.wake());
        }
    }

    /// Adds one who waits for the signal; `None` if it has come.
    pub(crate) fn add_waiter(&self, waker: Waker) -> Option<u64> {
        let mut links = lock(&self.links);
        if self.cause().is_some() {
            drop(links);
            return None;
        }
        Some(links.more().waiters.insert(Some(waker)))
    }

    /// Has the signal wake `waker` instead of the one added before; `false` if it has come.
    pub(crate) fn set_waiter(&self, key: u64, waker: &Waker) -> bool {
        // The signal takes the place away, under the same lock.
        parking::store(
            &self.links,
            |links| links.more.as_mut()?.waiters.get_mut(key),
            waker,
        )
    }

    pub(crate) fn remove_waiter(&self, key: u64) {
        unwind::dispose(self.unlink(|more| more.waiters.remove(key)));
    }

    /// Adds a callback, or gives it back if the signal has come.
    pub(crate) fn add_callback(&self, callback: Callback) -> Result<u64, Callback> {
        let mut links = lock(&self.links);
        if self.cause().is_some() {
            return Err(callback);
        }
        Ok(links.more().callbacks.insert(callback))
    }

    pub(crate) fn remove_callback(&self, key: u64) -> Option<Callback> {
        self.unlink(|more| more.callbacks.remove(key))
    }

    /// Takes something out of the links, which are empty once the token has fired.
    pub(in crate::token) fn unlink<T>(
        &self,
        take: impl FnOnce(&mut More) -> Option<T>,
    ) -> Option<T> {
        let mut links = lock(&self.links);
        links.more.as_mut().and_then(|more| take(more))
    }
}
