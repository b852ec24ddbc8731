//! The one door for generated code. Nothing in here is for people: it changes without notice, together with the attribute.

#[path = "private/arguments.rs"]
mod arguments;
#[path = "private/covered.rs"]
mod covered;
#[path = "private/given.rs"]
mod given;

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
use crate::policy::PolicyRef;
use crate::returns::of_result;

pub use self::arguments::{Moved, MovedType, Sent, keep, returns};
pub use self::covered::{Covered, Deferred, Finished, Holder, Returned, Unfinished};
pub use self::given::{
    ByReference, ByValue, Caller, CallerToken, Fallback, FallbackFn, Grace, Limit, MaxAbandoned,
    Ms, OtherType, Secs, Until, Upstream, fallback,
};

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
    Late, LateElsewhere, LateFn, Unclaimed, claim, claim_or_convert, ending, late, on_late,
    unclaimed, unclaimed_future, unclaimed_maker,
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

/// Pins the return type of an async operation; it is never called.
#[must_use]
pub fn never_run<R>() -> R {
    unreachable!("generated code has called what it promises not to")
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
