//! The one door for generated code. Nothing in here is for people: it changes without notice, together with the attribute.

#[path = "private/covered.rs"]
mod covered;

use std::fmt::Debug;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;

use crate::call::inline;
use crate::call::polled::InlineFuture;
use crate::call::report::Classify;
use crate::call::returned_future::{self, ReturnedFutureCall};
use crate::call::rim::{Convert, Finish, Or};
#[cfg(feature = "tokio")]
use crate::call::task::{self, Spawn};
use crate::call::waiter::WaitingCall;
use crate::call::worker::{self, OnWorker};
use crate::deadline::Deadline;
use crate::policy::PolicyRef;
use crate::returns::of_result;

pub use self::covered::{Covered, Deferred, Finished, Holder, Returned, Unfinished};

pub use std::boxed::Box;
pub use std::clone::Clone;
pub use std::pin::pin;
pub use std::time::Duration;
pub use std::{concat, module_path};

pub use crate::__timeout_options as options;
pub use crate::call::TokenParam;
pub use crate::call::ask::Ask;
pub use crate::call::checked::{Checked, NotAFunction};
pub use crate::call::polled::InlineCall;
pub use crate::call::unclaimed::{
    Unclaimed, claim, claim_or_convert, ending, late, on_late, on_late_elsewhere, unclaimed,
    unclaimed_future, unclaimed_maker,
};
pub use crate::error::TimeoutError;
pub use crate::policy::Policy;
pub use crate::returns::{Ending, FromTimeout};
pub use crate::token::CancelToken;

/// What one call asks for.
#[inline]
pub fn ask(policy: &'static Policy) -> Ask {
    Ask::new(PolicyRef::Static(policy))
}

impl Ask {
    /// A deadline besides the limit.
    pub fn deadline(mut self, deadline: impl Until) -> Self {
        self.deadline = self.deadline.min(deadline.into());
        self
    }

    /// Links further tokens that stop the call.
    pub fn upstream<T: Upstream + ?Sized>(mut self, tokens: &T) -> Self {
        tokens.each(&mut |token| self.upstream.push(token.0.clone()));
        self
    }

    /// Links the caller's own token, the parameter that bears the token's name. The form says what the body gets in its place.
    pub fn caller_token<T: CallerToken>(mut self, token: &T) -> (Self, T::Form) {
        self.upstream.push(token.token().0.clone());
        (self, T::FORM)
    }
}

/// What a shared deadline can be.
#[diagnostic::on_unimplemented(
    message = "`deadline` takes a deadline, and `{Self}` is none",
    label = "this must be a `Deadline` or an `Instant`; for a duration, write `limit = ..`"
)]
pub trait Until: Into<Deadline> {}

#[diagnostic::do_not_recommend]
impl<T: Into<Deadline>> Until for T {}

/// Tokens that stop a call.
#[diagnostic::on_unimplemented(
    message = "`upstream` takes tokens, and `{Self}` is none",
    label = "this must be a `CancelToken`, an `Option` of one, or a slice of them"
)]
pub trait Upstream {
    /// Hands each token to `take`.
    fn each(&self, take: &mut dyn FnMut(&CancelToken));
}

#[diagnostic::do_not_recommend]
impl Upstream for CancelToken {
    fn each(&self, take: &mut dyn FnMut(&CancelToken)) {
        take(self);
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream> Upstream for Option<T> {
    fn each(&self, take: &mut dyn FnMut(&CancelToken)) {
        if let Some(token) = self {
            token.each(take);
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream> Upstream for [T] {
    fn each(&self, take: &mut dyn FnMut(&CancelToken)) {
        for token in self {
            token.each(take);
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream, const N: usize> Upstream for [T; N] {
    fn each(&self, take: &mut dyn FnMut(&CancelToken)) {
        self.as_slice().each(take);
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream> Upstream for Vec<T> {
    fn each(&self, take: &mut dyn FnMut(&CancelToken)) {
        self.as_slice().each(take);
    }
}

#[diagnostic::do_not_recommend]
impl<T: Upstream + ?Sized> Upstream for &T {
    fn each(&self, take: &mut dyn FnMut(&CancelToken)) {
        T::each(self, take);
    }
}

/// The type of a parameter that bears the token's name.
#[diagnostic::on_unimplemented(
    message = "a parameter with the token's name must be a `CancelToken` or a `&CancelToken`",
    label = "this parameter hides the token; rename it, or set `token = ..` to another name"
)]
pub trait CallerToken {
    /// How the body gets the call's own token.
    type Form;
    /// The one value of that type.
    const FORM: Self::Form;

    /// The token.
    fn token(&self) -> &CancelToken;
}

#[diagnostic::do_not_recommend]
impl CallerToken for CancelToken {
    type Form = ByValue;
    const FORM: ByValue = ByValue;

    fn token(&self) -> &CancelToken {
        self
    }
}

#[diagnostic::do_not_recommend]
impl CallerToken for &CancelToken {
    type Form = ByReference;
    const FORM: ByReference = ByReference;

    fn token(&self) -> &CancelToken {
        self
    }
}

/// The body owns the call's token.
#[derive(Clone, Copy, Debug)]
pub struct ByValue;

impl ByValue {
    /// The body's binding.
    #[must_use]
    pub fn bind(self, token: &CancelToken) -> CancelToken {
        token.clone()
    }
}

/// The body borrows the call's token.
#[derive(Clone, Copy, Debug)]
pub struct ByReference;

impl ByReference {
    /// The body's binding.
    #[must_use]
    pub fn bind(self, token: &CancelToken) -> &CancelToken {
        token
    }
}

/// What may travel to another thread with its operation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot go to another thread with the operation",
    label = "this argument must be `Send`: take `Arc` for `Rc`, add `+ Send` to a `dyn` type, or set `run = \"inline\"`"
)]
pub trait Owned: Send {}

#[diagnostic::do_not_recommend]
impl<T: Send> Owned for T {}

/// An argument that goes propagated.
pub fn owned<T: Owned>(value: T) -> T {
    value
}

/// An argument that stays.
#[inline]
pub fn same<T>(value: T) -> T {
    value
}

/// An argument of a generic type that moves with the operation.
pub fn sent<T: Send>(value: T) -> T {
    value
}

/// A receiver that goes propagated; it cannot be bound anew.
pub fn owned_ref<T: Owned>(_: &T) {}

/// Pins the return type of an async operation; it is never called.
#[must_use]
pub fn never_run<R>() -> R {
    unreachable!("generated code has called what it promises not to")
}

/// What gives the return value when there is no answer.
#[diagnostic::on_unimplemented(
    message = "`fallback` takes a function of `TimeoutError` that returns `{R}`, and `{Self}` is none",
    label = "this must be a function, as in `|_| ..`"
)]
pub trait Fallback<R>: FnOnce(TimeoutError) -> R {}

#[diagnostic::do_not_recommend]
impl<R, B: FnOnce(TimeoutError) -> R> Fallback<R> for B {}

/// Gives a `fallback` its expected type. Only this bound reports a value that is no function of `TimeoutError`.
pub fn fallback<R, B: Fallback<R>>(
    _never_run: fn() -> R,
    function: B,
) -> Checked<B, fn(TimeoutError) -> R> {
    Checked::new(function)
}

impl<R, B: FnOnce(TimeoutError) -> R> Checked<B, fn(TimeoutError) -> R> {
    /// The function.
    pub fn function(self) -> B {
        self.into_function()
    }
}

/// A `fallback` that generated code calls. That call is written beside the attribute: a `#[track_caller]` function, called from here,
/// would see a line of the standard library.
pub fn or<R, B: FnOnce(TimeoutError) -> R>(call: B) -> Or<B> {
    Or(call)
}

/// A returned value of any type, with `fallback`.
#[derive(Debug)]
pub struct Answer<'r, R>(pub &'r R);

impl<'r, T, E: Debug> Answer<'r, Result<T, E>> {
    /// An `Err` is an error.
    #[must_use]
    pub fn ending(&self) -> Ending<'r> {
        of_result(self.0)
    }
}

impl<R> Deref for Answer<'_, R> {
    type Target = Plain;

    fn deref(&self) -> &Plain {
        &Plain
    }
}

/// A value that is no result: its method is found where `Answer` has none.
#[derive(Debug)]
pub struct Plain;

impl Plain {
    /// Every value is an answer.
    #[must_use]
    pub fn ending<'r>(&self) -> Ending<'r> {
        Ending::Answer
    }
}

type Inline<'a, R, Fut, B> = InlineFuture<'a, R, Fut, B>;
type Made<R, Fut, B> = ReturnedFutureCall<R, Fut, B>;
#[cfg(feature = "tokio")]
type Task<R, A, F, Fut, B> = WaitingCall<R, Spawn<R, A, F, Fut>, B>;
type OnWorkerThread<R, A, F, Fut, B> = WaitingCall<R, OnWorker<R, A, F, Fut>, B>;

/// Sync, on a worker.
pub fn sync_worker<R, A, F>(ask: Ask, op: F) -> R
where
    R: FromTimeout + Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
{
    Or(R::from_timeout as Convert<R>).finish(worker::sync_worker(ask, R::ending, op))
}

/// Sync, on a worker, with `fallback`.
pub fn sync_worker_or<R, A, F, B>(
    ask: Ask,
    fallback: B,
    op: F,
    classify: impl Fn(&R) -> Ending<'_> + Send + Sync + 'static,
) -> B::Output
where
    R: Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    B: Finish<R>,
{
    fallback.finish(worker::sync_worker(ask, classify, op))
}

/// Sync, on the caller's thread.
pub fn sync_inline<R, A, F>(ask: Ask, op: F) -> R
where
    R: FromTimeout,
    A: TokenParam,
    F: FnOnce(A) -> R,
{
    Or(R::from_timeout as Convert<R>).finish(inline::sync_inline(ask, R::ending, op))
}

/// Sync, on the caller's thread, with `fallback`.
pub fn sync_inline_or<R, A, F, B>(ask: Ask, fallback: B, op: F, classify: Classify<R>) -> B::Output
where
    A: TokenParam,
    F: FnOnce(A) -> R,
    B: Finish<R>,
{
    fallback.finish(inline::sync_inline(ask, classify, op))
}

/// Async, polled in place: the call's own entry, beside the operation.
impl InlineCall {
    /// Polls `op` until the verdict.
    #[inline]
    pub fn until_verdict<'a, R, Fut>(
        &'a mut self,
        op: Pin<&'a mut Fut>,
    ) -> Inline<'a, R, Fut, Or<Convert<R>>>
    where
        R: FromTimeout,
        Fut: Future<Output = R>,
    {
        self.run(op, R::ending, Or(R::from_timeout as Convert<R>))
    }

    /// Polls `op` until the verdict, with `fallback`.
    #[inline]
    pub fn until_verdict_or<'a, R, Fut, B>(
        &'a mut self,
        fallback: B,
        op: Pin<&'a mut Fut>,
        classify: Classify<R>,
    ) -> Inline<'a, R, Fut, B>
    where
        Fut: Future<Output = R>,
        B: Finish<R>,
    {
        self.run(op, classify, fallback)
    }
}

/// A function that returns a future: made now, polled in place. That it is a future of `R` is asked by what callers are given, and
/// not here too, so that a mismatch is one error.
pub fn made_inline<R, A, F, Fut>(ask: Ask, op: F) -> Made<R, Fut, Or<Convert<R>>>
where
    R: FromTimeout,
    A: TokenParam,
    F: FnOnce(A) -> Fut,
{
    made_inline_or(ask, Or(R::from_timeout as Convert<R>), op, R::ending)
}

/// A function that returns a future: made now, polled in place, with `fallback`.
pub fn made_inline_or<R, A, F, Fut, B>(
    ask: Ask,
    fallback: B,
    op: F,
    classify: Classify<R>,
) -> Made<R, Fut, B>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    B: Finish<R>,
{
    returned_future::returned_future(ask, classify, op, fallback)
}

/// Async, as a task.
#[cfg(feature = "tokio")]
pub fn async_task<R, A, F, Fut>(ask: Ask, op: F) -> Task<R, A, F, Fut, Or<Convert<R>>>
where
    R: FromTimeout + Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R> + Send + 'static,
{
    async_task_or(ask, Or(R::from_timeout as Convert<R>), op, R::ending)
}

/// Async, as a task, with `fallback`.
#[cfg(feature = "tokio")]
pub fn async_task_or<R, A, F, Fut, B>(
    ask: Ask,
    fallback: B,
    op: F,
    classify: Classify<R>,
) -> Task<R, A, F, Fut, B>
where
    R: Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R> + Send + 'static,
    B: Finish<R>,
{
    task::async_task(ask, classify, op, fallback)
}

/// Met by no type: it says what is missing.
#[cfg(not(feature = "tokio"))]
#[diagnostic::on_unimplemented(
    message = "`run = \"task\"` needs the feature `tokio` of `timeout-runtime`",
    label = "an async function with `run = \"task\"` or `cancel = false`",
    note = "turn the feature on, or set `run = \"worker\"`"
)]
pub trait TokioFeature {}

/// Async, as a task: an error that names the feature.
#[cfg(not(feature = "tokio"))]
pub fn async_task<R: TokioFeature, A, F, Fut>(_: Ask, op: F) -> std::future::Pending<R>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    Fut: Future<Output = R>,
{
    drop(op);
    std::future::pending()
}

/// Async, as a task, with `fallback`: an error that names the feature.
#[cfg(not(feature = "tokio"))]
pub fn async_task_or<R: TokioFeature, A, F, Fut, B>(
    _: Ask,
    _: B,
    op: F,
    _: Classify<R>,
) -> std::future::Pending<B::Output>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    Fut: Future<Output = R>,
    B: Finish<R>,
    B: Finish<R>,
{
    drop(op);
    std::future::pending()
}

/// Async, on a worker.
pub fn async_worker<R, A, F, Fut>(ask: Ask, op: F) -> OnWorkerThread<R, A, F, Fut, Or<Convert<R>>>
where
    R: FromTimeout + Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R>,
{
    async_worker_or(ask, Or(R::from_timeout as Convert<R>), op, R::ending)
}

/// Async, on a worker, with `fallback`.
pub fn async_worker_or<R, A, F, Fut, B>(
    ask: Ask,
    fallback: B,
    op: F,
    classify: Classify<R>,
) -> OnWorkerThread<R, A, F, Fut, B>
where
    R: Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R>,
    B: Finish<R>,
{
    worker::async_worker(ask, classify, op, fallback)
}
