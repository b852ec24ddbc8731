//! Runs and drops user code whose panics must not propagate.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The payload of a panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs `f` and returns its panic. The panic hook has run by then.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, Payload> {
    catch_unwind(AssertUnwindSafe(f))
}

/// As `catch`, but compiled only once.
pub(crate) fn panic_of(f: &mut dyn FnMut()) -> Option<Payload> {
    catch(f).err()
}

/// Runs `f` and discards its panic.
pub(crate) fn contain(f: impl FnOnce()) {
    let mut f = Some(f);
    let panic = panic_of(&mut || {
        if let Some(f) = f.take() {
            f();
        }
    });
    discard(panic);
}

/// Drops a value of the user and discards a panic of its destructor.
pub(crate) fn drop_catching<T>(value: T) {
    let mut value = Some(value);
    discard(panic_of(&mut || value = None));
}

/// Drops the payload of a panic. If its destructor panics too, the second payload is leaked.
fn discard(panic: Option<Payload>) {
    let dropped = panic.map(|payload| catch(|| drop(payload)));
    if let Some(Err(again)) = dropped {
        std::mem::forget(again);
    }
}

/// A value of the user that this crate owns. Dropping it discards a panic of its destructor.
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
        drop_catching(self.0.take());
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
