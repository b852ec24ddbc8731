//! The entry points of generated code. They are not a public API: they change without notice,
//! together with the attribute.

mod arguments;
mod covered;
mod given;

use std::fmt::Debug;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;

use crate::call::convert::{Convert, IntoReturn, OrConvert};
use crate::call::inline;
use crate::call::polled::InlineFuture;
use crate::call::report::Classify;
use crate::call::returned_future::{self, ReturnedFutureCall};
#[cfg(feature = "tokio")]
use crate::call::task::{self, Spawn};
use crate::call::waiter::WaitingCall;
use crate::call::worker::{self, OnWorker};
use crate::outcome::{of_result, panic_on_timeout};
use crate::terms::PolicyRef;

pub use self::arguments::{Moved, MovedType, Sent, keep, returns};
pub use self::covered::{Container, Covered, HoldsFuture, ReturnType, WithFuture, WithoutFuture};
pub use self::given::{
    ByReference, ByValue, Caller, CallerToken, Fallback, FallbackClosure, Grace, Limit,
    MaxAbandoned, Ms, OtherType, Secs, SharedDeadline, Upstream, fallback,
};

pub use std::boxed::Box;
pub use std::clone::Clone;
pub use std::pin::pin;
pub use std::time::Duration;
pub use std::{concat, module_path};

pub use crate::__timeout_options as options;
pub use crate::call::TokenParam;
pub use crate::call::checked::{Checked, NotAFunction};
pub use crate::call::late_value::{
    LateGuard, OnLateClosure, OnLateFunction, SendOnLate, disarm, disarm_or_convert, guard_future,
    guard_operation, guard_returned_future, guarded_ending, on_late, on_late_call,
};
pub use crate::call::options::CallOptions;
pub use crate::call::polled::InlineCall;
pub use crate::outcome::TimeoutError;
pub use crate::outcome::{Ending, FromTimeout};
pub use crate::terms::Policy;
pub use crate::token::CancelToken;

/// The options of one call.
#[inline]
pub fn call_options(policy: &'static Policy) -> CallOptions {
    CallOptions::new(PolicyRef::Static(policy))
}

/// Has any return type: generated code names a type with it. It is never called.
#[must_use]
pub fn never_run<R>() -> R {
    unreachable!("generated code never calls this")
}

/// Wraps the closure in which generated code calls the `fallback`. The call must be in generated
/// code, beside the attribute: if the runtime made it, a `#[track_caller]` function would report a
/// line of the standard library.
pub fn fallback_call<R, B: FnOnce(TimeoutError) -> R>(call: B) -> OrConvert<B> {
    OrConvert(call)
}

/// The error of a test without `fallback`. Its method is called beside the test, so that the panic
/// reports the line of the test. It is no function, because lints check the path of a function
/// there.
#[derive(Debug)]
pub struct TestError(pub TimeoutError);

impl TestError {
    /// Panics with the text of the error.
    #[track_caller]
    #[allow(clippy::must_use_candidate)] // It never returns.
    pub fn fail<R>(self) -> R {
        panic_on_timeout(self.0)
    }
}

/// A returned value of a function with `fallback`, which may have any type.
#[derive(Debug)]
pub struct ReturnValue<'r, R>(pub &'r R);

impl<'r, T, E: Debug> ReturnValue<'r, Result<T, E>> {
    /// An `Err` is an error.
    #[must_use]
    pub fn ending(&self) -> Ending<'r> {
        of_result(self.0)
    }
}

impl<R> Deref for ReturnValue<'_, R> {
    type Target = PlainValue;

    fn deref(&self) -> &PlainValue {
        &PlainValue
    }
}

/// A value that is not a `Result`. Its method is used if `ReturnValue` has none.
#[derive(Debug)]
pub struct PlainValue;

impl PlainValue {
    /// Every value is a success.
    #[must_use]
    pub fn ending<'r>(&self) -> Ending<'r> {
        Ending::Answer
    }
}

#[cfg(feature = "tokio")]
type TaskCall<R, A, F, Fut, B> = WaitingCall<R, Spawn<R, A, F, Fut>, B>;
type WorkerCall<R, A, F, Fut, B> = WaitingCall<R, OnWorker<R, A, F, Fut>, B>;

/// Sync function on a worker.
pub fn sync_worker<R, A, F>(options: CallOptions, op: F) -> R
where
    R: FromTimeout + Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
{
    OrConvert::from_timeout().into_return(worker::sync_worker(options, R::ending, op))
}

/// Sync function on a worker, with `fallback`.
pub fn sync_worker_or<R, A, F, B>(
    options: CallOptions,
    fallback: B,
    op: F,
    classify: impl Fn(&R) -> Ending<'_> + Send + Sync + 'static,
) -> B::Output
where
    R: Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    B: IntoReturn<R>,
{
    fallback.into_return(worker::sync_worker(options, classify, op))
}

/// Sync function on the caller's thread.
pub fn sync_inline<R, A, F>(options: CallOptions, op: F) -> R
where
    R: FromTimeout,
    A: TokenParam,
    F: FnOnce(A) -> R,
{
    OrConvert::from_timeout().into_return(inline::sync_inline(options, R::ending, op))
}

/// Sync function on the caller's thread, with `fallback`.
pub fn sync_inline_or<R, A, F, B>(
    options: CallOptions,
    fallback: B,
    op: F,
    classify: Classify<R>,
) -> B::Output
where
    A: TokenParam,
    F: FnOnce(A) -> R,
    B: IntoReturn<R>,
{
    fallback.into_return(inline::sync_inline(options, classify, op))
}

/// Async function, polled in place.
impl InlineCall {
    /// Polls `op` until the outcome.
    #[inline]
    pub fn until_verdict<'a, R, Fut>(
        &'a mut self,
        op: Pin<&'a mut Fut>,
    ) -> InlineFuture<'a, R, Fut, OrConvert<Convert<R>>>
    where
        R: FromTimeout,
        Fut: Future<Output = R>,
    {
        self.run(op, R::ending, OrConvert::from_timeout())
    }

    /// Polls `op` until the outcome, with `fallback`.
    #[inline]
    pub fn until_verdict_or<'a, R, Fut, B>(
        &'a mut self,
        fallback: B,
        op: Pin<&'a mut Fut>,
        classify: Classify<R>,
    ) -> InlineFuture<'a, R, Fut, B>
    where
        Fut: Future<Output = R>,
        B: IntoReturn<R>,
    {
        self.run(op, classify, fallback)
    }
}

/// Function that returns a future: called now, polled in place. It does not require `Fut:
/// Future<Output = R>`: the returned type does, and a mismatch must be one error.
pub fn returned_future_inline<R, A, F, Fut>(
    options: CallOptions,
    op: F,
) -> ReturnedFutureCall<R, Fut, OrConvert<Convert<R>>>
where
    R: FromTimeout,
    A: TokenParam,
    F: FnOnce(A) -> Fut,
{
    returned_future_inline_or(options, OrConvert::from_timeout(), op, R::ending)
}

/// Function that returns a future: called now, polled in place, with `fallback`.
pub fn returned_future_inline_or<R, A, F, Fut, B>(
    options: CallOptions,
    fallback: B,
    op: F,
    classify: Classify<R>,
) -> ReturnedFutureCall<R, Fut, B>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    B: IntoReturn<R>,
{
    returned_future::returned_future(options, classify, op, fallback)
}

/// Async function as a task.
#[cfg(feature = "tokio")]
pub fn async_task<R, A, F, Fut>(
    options: CallOptions,
    op: F,
) -> TaskCall<R, A, F, Fut, OrConvert<Convert<R>>>
where
    R: FromTimeout + Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R> + Send + 'static,
{
    async_task_or(options, OrConvert::from_timeout(), op, R::ending)
}

/// Async function as a task, with `fallback`.
#[cfg(feature = "tokio")]
pub fn async_task_or<R, A, F, Fut, B>(
    options: CallOptions,
    fallback: B,
    op: F,
    classify: Classify<R>,
) -> TaskCall<R, A, F, Fut, B>
where
    R: Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R> + Send + 'static,
    B: IntoReturn<R>,
{
    task::async_task(options, classify, op, fallback)
}

/// Implemented by no type: its error names the missing feature.
#[cfg(not(feature = "tokio"))]
#[diagnostic::on_unimplemented(
    message = "`run = \"task\"` needs the feature `tokio` of `timeout-runtime`",
    label = "an async function with `run = \"task\"` or `cancel = false`",
    note = "turn the feature on, or set `run = \"worker\"`"
)]
pub trait TokioFeature {}

/// Async function as a task: fails to compile, and the error names the feature.
#[cfg(not(feature = "tokio"))]
pub fn async_task<R: TokioFeature, A, F, Fut>(_: CallOptions, op: F) -> std::future::Pending<R>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    Fut: Future<Output = R>,
{
    drop(op);
    std::future::pending()
}

/// Async function as a task, with `fallback`: fails to compile, and the error names the feature.
#[cfg(not(feature = "tokio"))]
pub fn async_task_or<R: TokioFeature, A, F, Fut, B>(
    _: CallOptions,
    _: B,
    op: F,
    _: Classify<R>,
) -> std::future::Pending<B::Output>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    Fut: Future<Output = R>,
    B: IntoReturn<R>,
{
    drop(op);
    std::future::pending()
}

/// Async function on a worker.
pub fn async_worker<R, A, F, Fut>(
    options: CallOptions,
    op: F,
) -> WorkerCall<R, A, F, Fut, OrConvert<Convert<R>>>
where
    R: FromTimeout + Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R>,
{
    async_worker_or(options, OrConvert::from_timeout(), op, R::ending)
}

/// Async function on a worker, with `fallback`.
pub fn async_worker_or<R, A, F, Fut, B>(
    options: CallOptions,
    fallback: B,
    op: F,
    classify: Classify<R>,
) -> WorkerCall<R, A, F, Fut, B>
where
    R: Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R>,
    B: IntoReturn<R>,
{
    worker::async_worker(options, classify, op, fallback)
}
