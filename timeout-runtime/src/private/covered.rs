//! Rejects return types that hide a boxed future: the limit would end before that future is polled.
//!
//! The attribute covers the await of a future that it sees in the return type. A type alias hides
//! the future, and so does a `Result` or an `Option` around it. So the compiler checks the type
//! itself. Futures with a type of their own, such as a `JoinHandle` or the receiver of a channel,
//! wait for work that runs elsewhere. They are results.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;

/// A boxed future, or a `Result` or an `Option` that holds one.
pub trait HoldsFuture {}

impl<F: Future + ?Sized> HoldsFuture for Pin<Box<F>> {}

impl<F: Future + Unpin + ?Sized> HoldsFuture for Box<F> {}

impl<T: HoldsFuture, E> HoldsFuture for Result<T, E> {}

impl<T: HoldsFuture> HoldsFuture for Option<T> {}

/// A `Result` or an `Option`.
pub trait Container {
    /// The type of the value inside.
    type Content;
}

impl<T, E> Container for Result<T, E> {
    type Content = T;
}

impl<T> Container for Option<T> {
    type Content = T;
}

/// The return type `R`. Its method `covered` is its own if `R` is [`HoldsFuture`], and the one of
/// [`WithoutFuture`] otherwise.
pub struct ReturnType<R>(WithoutFuture, PhantomData<fn() -> R>);

/// A return type that holds no future.
#[derive(Clone, Copy, Debug)]
pub struct WithoutFuture;

/// A return type that holds a future.
#[derive(Clone, Copy, Debug)]
pub struct WithFuture;

impl<R> ReturnType<R> {
    /// Never called.
    #[inline]
    #[must_use]
    pub fn new(_never_run: fn() -> R) -> Self {
        Self(WithoutFuture, PhantomData)
    }
}

impl<R: HoldsFuture> ReturnType<R> {
    /// The return type holds a future.
    #[inline]
    #[must_use]
    pub fn covered(&self) -> WithFuture {
        WithFuture
    }
}

impl<R: Container> ReturnType<R>
where
    R::Content: HoldsFuture,
{
    /// The return type holds a future inside. A return type that is itself a future is an error
    /// already, unless there is a `fallback`.
    #[inline]
    #[must_use]
    pub fn content_covered(&self) -> WithFuture {
        WithFuture
    }
}

impl<R> Deref for ReturnType<R> {
    type Target = WithoutFuture;

    #[inline]
    fn deref(&self) -> &WithoutFuture {
        &self.0
    }
}

impl WithoutFuture {
    /// The return type holds no future.
    #[inline]
    #[must_use]
    pub fn covered(&self) -> Self {
        *self
    }

    /// The return type holds no future inside.
    #[inline]
    #[must_use]
    pub fn content_covered(&self) -> Self {
        *self
    }
}

/// A return type that holds no future.
#[diagnostic::on_unimplemented(
    message = "the limit of this function would not cover the future that it returns",
    label = "the future in this type is polled after the call has ended",
    note = "write an `async fn`, and await the future in its body; or return the future alone and spelled out, as in \
            `Pin<Box<dyn Future<Output = ..> + Send>>`: then the limit covers its await"
)]
pub trait Covered {
    /// Does nothing.
    fn check(self);
}

#[diagnostic::do_not_recommend]
impl Covered for WithoutFuture {
    #[inline]
    fn check(self) {}
}

impl<R> fmt::Debug for ReturnType<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReturnType").finish_non_exhaustive()
    }
}
