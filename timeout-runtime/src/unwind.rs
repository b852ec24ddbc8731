//! Where user code is run whose panic must not pass.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs `f`; a panic becomes a value. The panic hook has shown it by then.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, Payload> {
    catch_unwind(AssertUnwindSafe(f))
}

/// Runs `f`; a panic ends here.
pub(crate) fn contain(f: impl FnOnce()) {
    if let Err(payload) = catch(f) {
        dispose(payload);
    }
}

/// Drops a user's value, whose destructor may panic. So may the destructor of that panic's payload; a third one in the
/// same chain is leaked.
pub(crate) fn dispose<T>(value: T) {
    if let Err(payload) = catch(|| drop(value))
        && let Err(again) = catch(|| drop(payload))
    {
        std::mem::forget(again);
    }
}

/// A user's value that is kept by us: a panic of its destructor ends here.
#[derive(Clone)]
pub(crate) struct Kept<T>(Option<T>);

impl<T> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    pub(crate) fn take(mut self) -> Option<T> {
        self.0.take()
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        dispose(self.0.take());
    }
}

/// The message of a panic, as the standard hook would print it.
pub(crate) fn text(payload: &Payload) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "Box<dyn Any>"
    }
}
