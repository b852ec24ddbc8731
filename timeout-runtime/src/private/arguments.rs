//! Checks the types of arguments and return values that move between threads.
//!
//! Generated code calls functions of traits, such as `Moved::moved(rows)`, and no generic functions
//! with a bound. For a type without the trait, the compiler then prints the trait's
//! `on_unimplemented` message at the user's code. For a generic function it would also point to the
//! bound in this file.

use crate::outcome::TimeoutError;

/// An argument that moves to another thread.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot move to another thread with the operation",
    label = "this argument must be `Send`: use `Arc` instead of `Rc`, add `+ Send` to a `dyn` type, or set `run = \"inline\"`"
)]
pub trait Moved: Sized {
    /// Returns the argument.
    #[inline]
    #[must_use]
    fn moved(self) -> Self {
        self
    }

    /// Checks a receiver, which cannot be rebound.
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
    /// Returns the argument.
    #[inline]
    #[must_use]
    fn moved(self) -> Self {
        self
    }
}

impl<T: Send> MovedType for T {}

/// Returns an argument that stays on the thread.
#[inline]
pub fn keep<T>(value: T) -> T {
    value
}

/// A return type that moves back from another thread.
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

/// Does nothing: the compiler only checks that the argument exists.
#[inline]
pub fn returns<R>(_from_timeout: fn(TimeoutError) -> R) {}
