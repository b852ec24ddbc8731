//! Where user code is run whose panic must not pass.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs `f`; a panic becomes a value. The panic hook has shown it by then.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, Payload> {
    catch_unwind(AssertUnwindSafe(f))
}

/// As `catch`, compiled once and not for each `f`.
pub(crate) fn panic_of(f: &mut dyn FnMut()) -> Option<Payload> {
    catch(f).err()
}

/// Runs `f`; a panic ends here.
pub(crate) fn contain(f: impl FnOnce()) {
    let mut f = Some(f);
    let panic = panic_of(&mut || {
        if let Some(f) = f.take() {
            f();
        }
    });
    discard(panic);
}

/// Drops a user's value, whose destructor may panic.
pub(crate) fn drop_catching<T>(value: T) {
    let mut value = Some(value);
    discard(panic_of(&mut || value = None));
}

/// Drops what a panic propagated. Its destructor may panic too; what that carries is leaked.
fn discard(panic: Option<Payload>) {
    let dropped = panic.map(|payload| catch(|| drop(payload)));
    if let Some(Err(again)) = dropped {
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
