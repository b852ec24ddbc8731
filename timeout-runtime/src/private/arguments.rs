//! What moves with an operation, and what comes back.
//!
//! Generated code calls these as functions of their traits, `Moved::moved(rows)`. For a type that lacks the trait, the compiler then shows
//! the text here and the place in the user's code. For a function with a bound, it would show the bound, in this file.

use crate::error::TimeoutError;

/// An argument that moves to another thread.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot move to another thread with the operation",
    label = "this argument must be `Send`: take `Arc` for `Rc`, add `+ Send` to a `dyn` type, or set `run = \"inline\"`"
)]
pub trait Moved: Sized {
    /// The argument itself.
    #[inline]
    #[must_use]
    fn moved(self) -> Self {
        self
    }

    /// For a receiver, which cannot be bound again.
    #[inline]
    fn lent(_: &Self) {}
}

#[diagnostic::do_not_recommend]
impl<T: Send> Moved for T {}

/// An argument whose type is a parameter of the function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot move to another thread with the operation",
    label = "this type must be `Send + 'static`: add both bounds, or set `run = \"inline\"`"
)]
pub trait MovedType: Sized {
    /// The argument itself.
    #[inline]
    #[must_use]
    fn moved(self) -> Self {
        self
    }
}

impl<T: Send> MovedType for T {}

/// An argument that stays.
#[inline]
pub fn keep<T>(value: T) -> T {
    value
}

/// A return type that comes back from another thread.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot come back from another thread",
    label = "this type must be `Send`: return `Box<dyn Error + Send + Sync>` for `Box<dyn Error>`, `Arc` for `Rc`, or set `run = \"inline\"`"
)]
pub trait Sent {
    /// Does nothing.
    #[inline]
    fn sent() {}
}

#[diagnostic::do_not_recommend]
impl<T: Send> Sent for T {}

/// Does nothing: that the function exists is the point.
#[inline]
pub fn returns<R>(_from_timeout: fn(TimeoutError) -> R) {}
