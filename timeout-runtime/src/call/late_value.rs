//! The `on_late` option: a late result goes to a function.
//!
//! With `on_late`, the operation returns its value inside a [`LateGuard`]. A late value is dropped
//! once by the operation's side, and dropping the guard calls the function. So no other code knows
//! about `on_late`, and calls without it pay nothing.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::context::frame;
use crate::outcome::FromTimeout;
use crate::outcome::TimeoutError;
use crate::unwind;

use super::checked::Checked;
use super::convert::{Convert, IntoReturn, OrConvert};
use super::report::Classify;

/// The function that gets a late value. `call` calls it, so that this type needs no bound.
pub struct OnLate<R, L> {
    function: L,
    call: fn(L, R),
}

impl<R, L: FnOnce(R)> OnLate<R, L> {
    pub(crate) fn new(function: L) -> Self {
        Self {
            function,
            call: |function, value| {
                unwind::contain(|| frame::outside(|| function(value)));
            },
        }
    }
}

/// A function that takes late values, or `()`, with which a late value is dropped.
pub trait LateFunction<R>: Sized {
    #[doc(hidden)]
    fn on_late(self) -> OnLate<R, Self>;
}

impl<R, L: FnOnce(R)> LateFunction<R> for L {
    fn on_late(self) -> OnLate<R, L> {
        OnLate::new(self)
    }
}

impl<R> LateFunction<R> for () {
    fn on_late(self) -> OnLate<R, ()> {
        OnLate {
            function: (),
            call: |(), value| drop(value),
        }
    }
}

/// A function that can get a late value.
#[diagnostic::on_unimplemented(
    message = "`on_late` takes a function of `{R}`, but `{Self}` is not one",
    label = "this must be a function, as in `|late| ..`"
)]
pub trait OnLateFunction<R>: Sized {
    /// The function.
    fn checked(self) -> Checked<Self, TakesValue<R>> {
        Checked::new(self)
    }
}

#[diagnostic::do_not_recommend]
impl<R, L: FnOnce(R)> OnLateFunction<R> for L {}

/// As [`OnLateFunction`], for closures, whose arguments get their types from this bound.
#[diagnostic::on_unimplemented(
    message = "`on_late` takes a function of `{R}`, but `{Self}` is not one",
    label = "this must be a function, as in `|late| ..`"
)]
pub trait OnLateClosure<R>: FnOnce(R) {}

#[diagnostic::do_not_recommend]
impl<R, L: FnOnce(R)> OnLateClosure<R> for L {}

/// Gives a closure its expected type.
pub fn on_late<R, L: OnLateClosure<R>>(
    _never_run: fn() -> R,
    function: L,
) -> Checked<L, TakesValue<R>> {
    Checked::new(function)
}

/// The shape of a function that takes the value of an operation.
#[derive(Debug)]
pub struct TakesValue<R>(PhantomData<fn(R)>);

impl<R, L: FnOnce(R)> Checked<L, TakesValue<R>> {
    /// The function.
    pub fn function(self) -> L {
        self.into_function()
    }
}

/// Wraps the closure in which generated code calls the `on_late` function. The call must be in
/// generated code, beside the attribute: a `#[track_caller]` function reports that line.
pub fn on_late_call<R, L: FnOnce(R)>(_never_run: fn() -> R, call: L) -> OnLate<R, L> {
    OnLate::new(call)
}

/// An `on_late` function that can move to another thread.
#[diagnostic::on_unimplemented(
    message = "the `on_late` function cannot move to another thread with the operation",
    label = "what this function captures must be `Send`: use `Arc` instead of `Rc`, add `+ Send` to a `dyn` type, or set `run = \"inline\"`"
)]
pub trait SendOnLate: Sized {
    /// The function itself.
    #[must_use]
    fn moved(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<L: Send> SendOnLate for L {}

/// A value that goes to the `on_late` function when it is dropped.
pub struct LateGuard<R, L>(Option<(R, OnLate<R, L>)>);

impl<R, L> LateGuard<R, L> {
    /// A reference to the value.
    pub fn value(&self) -> &R {
        match &self.0 {
            Some((value, _)) => value,
            None => unreachable!("only `disarm` and `drop` take the value"),
        }
    }

    /// Returns the value to the caller and drops the function.
    fn disarm(mut self) -> R {
        match self.0.take() {
            Some((value, on_late)) => {
                unwind::drop_catching(on_late);
                value
            }
            None => unreachable!("only `disarm` and `drop` take the value"),
        }
    }
}

impl<R, L> Drop for LateGuard<R, L> {
    fn drop(&mut self) {
        if let Some((value, on_late)) = self.0.take() {
            (on_late.call)(on_late.function, value);
        }
    }
}

/// Disarms the guard, then converts the value with `M`.
#[derive(Debug)]
pub struct Disarm<M>(M);

impl<R, L, M: IntoReturn<R>> IntoReturn<LateGuard<R, L>> for Disarm<M> {
    type Output = M::Output;

    fn into_return(self, result: Result<LateGuard<R, L>, TimeoutError>) -> M::Output {
        self.0.into_return(result.map(LateGuard::disarm))
    }
}

/// The conversion of a call with `on_late` and `fallback`.
pub fn disarm<M>(fallback: M) -> Disarm<M> {
    Disarm(fallback)
}

/// The conversion of a call with `on_late` and without `fallback`.
#[must_use]
pub fn disarm_or_convert<R: FromTimeout>() -> Disarm<OrConvert<Convert<R>>> {
    Disarm(OrConvert(R::from_timeout))
}

/// Classifies a guarded value without `fallback`.
#[must_use]
pub fn guarded_returned<R: FromTimeout, L>() -> Classify<LateGuard<R, L>> {
    |guard| guard.value().returned()
}

/// Wraps an operation so that it returns a guarded value.
pub fn guard_operation<A, R, L>(
    on_late: OnLate<R, L>,
    op: impl FnOnce(A) -> R,
) -> impl FnOnce(A) -> LateGuard<R, L> {
    move |param| LateGuard(Some((op(param), on_late)))
}

/// Wraps an operation that returns a future.
pub fn guard_returned_future<A, Fut, R, L>(
    on_late: OnLate<R, L>,
    op: impl FnOnce(A) -> Fut,
) -> impl FnOnce(A) -> GuardedFuture<Fut, R, L> {
    move |param| guard_future(on_late, op(param))
}

/// Wraps an operation that is a future.
pub fn guard_future<Fut, R, L>(on_late: OnLate<R, L>, future: Fut) -> GuardedFuture<Fut, R, L> {
    GuardedFuture {
        future,
        on_late: Some(on_late),
    }
}

pin_project! {
    /// A future that returns a guarded value.
    #[must_use = "futures do nothing unless polled"]
    pub struct GuardedFuture<Fut, R, L> {
        #[pin]
        future: Fut,
        // `None` once the future has returned.
        on_late: Option<OnLate<R, L>>,
    }
}

impl<R, Fut: Future<Output = R>, L> Future for GuardedFuture<Fut, R, L> {
    type Output = LateGuard<R, L>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<LateGuard<R, L>> {
        let this = self.project();
        let Poll::Ready(value) = this.future.poll(context) else {
            return Poll::Pending;
        };
        match this.on_late.take() {
            Some(on_late) => Poll::Ready(LateGuard(Some((value, on_late)))),
            None => panic!("a finished call was polled again"),
        }
    }
}

impl<R, L> fmt::Debug for OnLate<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnLate").finish_non_exhaustive()
    }
}

impl<R, L> fmt::Debug for LateGuard<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateGuard").finish_non_exhaustive()
    }
}

impl<Fut, R, L> fmt::Debug for GuardedFuture<Fut, R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedFuture").finish_non_exhaustive()
    }
}
