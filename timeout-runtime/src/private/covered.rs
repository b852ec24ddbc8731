//! What a function returns on the spot must be its result. A boxed future is not: the limit would end when the future has been made.
//!
//! The attribute times the await of a future that it can see in the return type. A type alias hides it, and so does a `Result` or an
//! `Option` around it, so the compiler has to look, once the types are known. Futures with a type of their own, such as a `JoinHandle` or
//! the receiver of a channel, wait for work that runs elsewhere, and are results.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;

/// A boxed future, or a `Result` or an `Option` that holds one.
pub trait Deferred {}

impl<F: Future + ?Sized> Deferred for Pin<Box<F>> {}

impl<F: Future + Unpin + ?Sized> Deferred for Box<F> {}

impl<T: Deferred, E> Deferred for Result<T, E> {}

impl<T: Deferred> Deferred for Option<T> {}

/// A `Result` or an `Option`.
pub trait Holder {
    /// What it holds.
    type Content;
}

impl<T, E> Holder for Result<T, E> {
    type Content = T;
}

impl<T> Holder for Option<T> {
    type Content = T;
}

/// The return type `R`, which has the method `covered` of its own where it is [`Deferred`], and that of [`Finished`] elsewhere.
pub struct Returned<R>(Finished, PhantomData<fn() -> R>);

/// A return type that holds no future.
#[derive(Clone, Copy, Debug)]
pub struct Finished;

/// A return type that holds a future.
#[derive(Clone, Copy, Debug)]
pub struct Unfinished;

impl<R> Returned<R> {
    /// Never called.
    #[inline]
    #[must_use]
    pub fn new(_never_run: fn() -> R) -> Self {
        Self(Finished, PhantomData)
    }
}

impl<R: Deferred> Returned<R> {
    /// The future in it.
    #[inline]
    #[must_use]
    pub fn covered(&self) -> Unfinished {
        Unfinished
    }
}

impl<R: Holder> Returned<R>
where
    R::Content: Deferred,
{
    /// The future in it, unless the type itself is one: without `fallback`, that is an error already.
    #[inline]
    #[must_use]
    pub fn content_covered(&self) -> Unfinished {
        Unfinished
    }
}

impl<R> Deref for Returned<R> {
    type Target = Finished;

    #[inline]
    fn deref(&self) -> &Finished {
        &self.0
    }
}

impl Finished {
    /// Nothing that is not finished.
    #[inline]
    #[must_use]
    pub fn covered(&self) -> Self {
        *self
    }

    /// The same.
    #[inline]
    #[must_use]
    pub fn content_covered(&self) -> Self {
        *self
    }
}

/// A return type that is finished, as all are but those that hold a future.
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
impl Covered for Finished {
    #[inline]
    fn check(self) {}
}

impl<R> fmt::Debug for Returned<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Returned").finish_non_exhaustive()
    }
}
