//! Answers that somebody else gets if they are thrown away: `on_late`.
//!
//! Such an answer goes its way as any other does, and is dropped where any other would be: once, by the operation's side. Its drop is the call of the
//! function, so nothing else has to know of it, and a call without such a function has nothing of it.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::error::TimeoutError;
use crate::returns::FromTimeout;
use crate::{frame, unwind};

use super::checked::Checked;
use super::report::Classify;
use super::rim::{Convert, Finish, Or};

/// What gets an answer that is thrown away. Nothing is asked of the type of the function any more.
pub struct OnLate<R, L> {
    function: L,
    call: fn(L, R),
}

impl<R, L: FnOnce(R)> OnLate<R, L> {
    pub(crate) fn new(function: L) -> Self {
        Self {
            function,
            call: |function, answer| function(answer),
        }
    }
}

/// What can get an answer that callers no longer get.
#[diagnostic::on_unimplemented(
    message = "`on_late` takes a function of `{R}`, and `{Self}` is none",
    label = "this must be a function, as in `|late| ..`"
)]
pub trait Late<R>: Sized {
    /// The function.
    fn checked(self) -> Checked<Self, Takes<R>> {
        Checked::new(self)
    }
}

#[diagnostic::do_not_recommend]
impl<R, L: FnOnce(R)> Late<R> for L {}

/// As [`Late`], with the type that a closure's argument takes.
#[diagnostic::on_unimplemented(
    message = "`on_late` takes a function of `{R}`, and `{Self}` is none",
    label = "this must be a function, as in `|late| ..`"
)]
pub trait LateFn<R>: FnOnce(R) {}

#[diagnostic::do_not_recommend]
impl<R, L: FnOnce(R)> LateFn<R> for L {}

/// Gives a closure its expected type.
pub fn on_late<R, L: LateFn<R>>(_never_run: fn() -> R, function: L) -> Checked<L, Takes<R>> {
    Checked::new(function)
}

/// A function that takes what an operation returns.
#[derive(Debug)]
pub struct Takes<R>(PhantomData<fn(R)>);

impl<R, L: FnOnce(R)> Checked<L, Takes<R>> {
    /// The function.
    pub fn function(self) -> L {
        self.into_function()
    }
}

/// An `on_late` that generated code calls. That call is written beside the attribute, where a `#[track_caller]` function looks for it.
pub fn late<R, L: FnOnce(R)>(_never_run: fn() -> R, call: L) -> OnLate<R, L> {
    OnLate::new(call)
}

/// What can get an answer elsewhere.
#[diagnostic::on_unimplemented(
    message = "what `on_late` calls cannot move to another thread with the operation",
    label = "what this function holds must be `Send`: take `Arc` for `Rc`, add `+ Send` to a `dyn` type, or set `run = \"inline\"`"
)]
pub trait LateElsewhere: Sized {
    /// The function itself.
    #[must_use]
    fn moved(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<L: Send> LateElsewhere for L {}

/// An answer on its way to the caller.
pub struct Unclaimed<R, L>(Option<(R, OnLate<R, L>)>);

impl<R, L> Unclaimed<R, L> {
    /// The answer, to look at.
    pub fn answer(&self) -> &R {
        match &self.0 {
            Some((answer, _)) => answer,
            None => unreachable!("an answer is claimed with its wrapper"),
        }
    }

    /// The caller has the answer.
    fn claim(mut self) -> R {
        match self.0.take() {
            Some((answer, on_late)) => {
                unwind::drop_catching(on_late);
                answer
            }
            None => unreachable!("an answer is claimed with its wrapper"),
        }
    }
}

impl<R, L> Drop for Unclaimed<R, L> {
    fn drop(&mut self) {
        if let Some((answer, on_late)) = self.0.take() {
            unwind::contain(|| frame::outside(|| (on_late.call)(on_late.function, answer)));
        }
    }
}

/// Hands the answer itself to what makes something of the ending.
#[derive(Debug)]
pub struct Claim<M>(M);

impl<R, L, M: Finish<R>> Finish<Unclaimed<R, L>> for Claim<M> {
    type Output = M::Output;

    fn finish(self, ending: Result<Unclaimed<R, L>, TimeoutError>) -> M::Output {
        self.0.finish(ending.map(Unclaimed::claim))
    }
}

/// What callers get, with `fallback`.
pub fn claim<M>(fallback: M) -> Claim<M> {
    Claim(fallback)
}

/// What callers get, without `fallback`.
#[must_use]
pub fn claim_or_convert<R: FromTimeout>() -> Claim<Or<Convert<R>>> {
    Claim(Or(R::from_timeout))
}

/// What an answer means, without `fallback`.
#[must_use]
pub fn ending<R: FromTimeout, L>() -> Classify<Unclaimed<R, L>> {
    |answer| answer.answer().ending()
}

/// An operation whose answer is unclaimed at first.
pub fn unclaimed<A, R, L>(
    on_late: OnLate<R, L>,
    op: impl FnOnce(A) -> R,
) -> impl FnOnce(A) -> Unclaimed<R, L> {
    move |param| Unclaimed(Some((op(param), on_late)))
}

/// The same of an operation that makes its future.
pub fn unclaimed_maker<A, Fut, R, L>(
    on_late: OnLate<R, L>,
    op: impl FnOnce(A) -> Fut,
) -> impl FnOnce(A) -> UnclaimedFuture<Fut, R, L> {
    move |param| unclaimed_future(on_late, op(param))
}

/// The same of an operation that is a future.
pub fn unclaimed_future<Fut, R, L>(
    on_late: OnLate<R, L>,
    future: Fut,
) -> UnclaimedFuture<Fut, R, L> {
    UnclaimedFuture {
        future,
        on_late: Some(on_late),
    }
}

pin_project! {
    /// A future whose answer is unclaimed at first.
    #[must_use = "futures do nothing unless polled"]
    pub struct UnclaimedFuture<Fut, R, L> {
        #[pin]
        future: Fut,
        // Until the answer.
        on_late: Option<OnLate<R, L>>,
    }
}

impl<R, Fut: Future<Output = R>, L> Future for UnclaimedFuture<Fut, R, L> {
    type Output = Unclaimed<R, L>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Unclaimed<R, L>> {
        let this = self.project();
        let Poll::Ready(answer) = this.future.poll(context) else {
            return Poll::Pending;
        };
        match this.on_late.take() {
            Some(on_late) => Poll::Ready(Unclaimed(Some((answer, on_late)))),
            None => panic!("a finished call was polled again"),
        }
    }
}

impl<R, L> fmt::Debug for OnLate<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnLate").finish_non_exhaustive()
    }
}

impl<R, L> fmt::Debug for Unclaimed<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unclaimed").finish_non_exhaustive()
    }
}

impl<Fut, R, L> fmt::Debug for UnclaimedFuture<Fut, R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnclaimedFuture").finish_non_exhaustive()
    }
}
