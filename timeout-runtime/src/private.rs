//! The one door for generated code. Nothing in here is for people: it changes without notice, together with the attribute.

use std::future::Future;

use crate::call::ask::PolicyRef;
use crate::call::rim::Rim;
use crate::call::sides::Classify;
use crate::call::{inline, worker};
use crate::context;

pub use std::boxed::Box;
pub use std::clone::Clone;
pub use std::time::Duration;
pub use std::{concat, module_path, stringify};

pub use crate::call::TokenParam;
pub use crate::call::ask::{Ask, Policy};
pub use crate::error::TimeoutError;
pub use crate::returns::{Ending, FromTimeout};
pub use crate::token::CancelToken;

/// What one call asks for.
pub fn ask(policy: &'static Policy) -> Ask {
    Ask::new(PolicyRef::Static(policy))
}

impl Ask {
    /// Links the caller's own token, the parameter that bears the token's name.
    pub fn caller_token<T: CallerToken>(mut self, token: &T) -> Self {
        self.upstream.push(token.token().0.clone());
        self
    }
}

/// The type of a parameter that bears the token's name.
#[diagnostic::on_unimplemented(
    message = "a parameter with the token's name must be a `CancelToken` or a `&CancelToken`",
    label = "this parameter hides the token; rename it, or set `token = ..` to another name"
)]
pub trait CallerToken {
    #[doc(hidden)]
    fn token(&self) -> &CancelToken;
}

impl CallerToken for CancelToken {
    fn token(&self) -> &CancelToken {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: CallerToken> CallerToken for &T {
    fn token(&self) -> &CancelToken {
        T::token(self)
    }
}

/// What may travel to another thread with its operation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot go to another thread with the operation",
    label = "this argument must be `Send`; take `Arc<T>` or another `Send` type, or set `run = \"inline\"`"
)]
pub trait Owned: Send {}

#[diagnostic::do_not_recommend]
impl<T: Send> Owned for T {}

/// An argument that goes along.
pub fn owned<T: Owned>(value: T) -> T {
    value
}

/// Pins the return type of an async operation; it is never called.
#[must_use]
pub fn never_run<R>() -> R {
    unreachable!("generated code has called what it promises not to")
}

/// A returned value of any type, with `fallback`.
#[derive(Debug)]
pub struct Value<'a, R>(pub &'a R);

impl<'a, T, E: std::fmt::Debug> Value<'a, Result<T, E>> {
    /// An `Err` is an error.
    #[must_use]
    pub fn ending(&self) -> Ending<'a> {
        crate::returns::of_result(self.0)
    }
}

/// Every other value is an answer: this is found where the method above is not.
pub trait AnyValue<'a> {
    /// An answer.
    fn ending(&self) -> Ending<'a>;
}

impl<'a, R> AnyValue<'a> for Value<'a, R> {
    fn ending(&self) -> Ending<'a> {
        Ending::Answer
    }
}

fn or<R>(ending: Result<R, TimeoutError>, fallback: impl FnOnce(TimeoutError) -> R) -> R {
    ending.unwrap_or_else(|error| context::outside(|| fallback(error)))
}

/// Sync, on a worker.
pub fn sync_worker<R, A, F>(ask: Ask, op: F) -> R
where
    R: FromTimeout + Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
{
    sync_worker_or(ask, R::from_timeout, R::ending, op)
}

/// Sync, on a worker, with `fallback`.
pub fn sync_worker_or<R, A, F, B>(ask: Ask, fallback: B, classify: Classify<R>, op: F) -> R
where
    R: Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    B: FnOnce(TimeoutError) -> R,
{
    or(worker::sync_worker(ask, classify, op), fallback)
}

/// Sync, on the caller's thread.
pub fn sync_inline<R, A, F>(ask: Ask, op: F) -> R
where
    R: FromTimeout,
    A: TokenParam,
    F: FnOnce(A) -> R,
{
    sync_inline_or(ask, R::from_timeout, R::ending, op)
}

/// Sync, on the caller's thread, with `fallback`.
pub fn sync_inline_or<R, A, F, B>(ask: Ask, fallback: B, classify: Classify<R>, op: F) -> R
where
    A: TokenParam,
    F: FnOnce(A) -> R,
    B: FnOnce(TimeoutError) -> R,
{
    or(inline::sync_inline(ask, classify, op), fallback)
}

/// Async, polled in place.
pub fn async_inline<R, A, F, Fut>(ask: Ask, op: F) -> impl Future<Output = R>
where
    R: FromTimeout,
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    Fut: Future<Output = R>,
{
    async_inline_or(ask, R::from_timeout, R::ending, op)
}

/// Async, polled in place, with `fallback`.
pub fn async_inline_or<R, A, F, Fut, B>(
    ask: Ask,
    fallback: B,
    classify: Classify<R>,
    op: F,
) -> impl Future<Output = R>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    Fut: Future<Output = R>,
    B: FnOnce(TimeoutError) -> R,
{
    let call = inline::async_inline(ask, classify, op);
    Rim::new(call, |ending| or(ending, fallback))
}

/// Async, as a task.
#[cfg(feature = "tokio")]
pub fn async_task<R, A, F, Fut>(ask: Ask, op: F) -> impl Future<Output = R> + Send
where
    R: FromTimeout + Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R> + Send + 'static,
{
    let call = crate::call::task::async_task(ask, R::ending, op);
    Rim::new(call, |ending| or(ending, R::from_timeout))
}

/// Async, as a task, with `fallback`.
#[cfg(feature = "tokio")]
pub fn async_task_or<R, A, F, Fut, B>(
    ask: Ask,
    fallback: B,
    classify: Classify<R>,
    op: F,
) -> impl Future<Output = R>
where
    R: Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R> + Send + 'static,
    B: FnOnce(TimeoutError) -> R,
{
    let call = crate::call::task::async_task(ask, classify, op);
    Rim::new(call, |ending| or(ending, fallback))
}

/// Async, on a worker.
pub fn async_worker<R, A, F, Fut>(ask: Ask, op: F) -> impl Future<Output = R> + Send
where
    R: FromTimeout + Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R>,
{
    let call = worker::async_worker(ask, R::ending, op);
    Rim::new(call, |ending| or(ending, R::from_timeout))
}

/// Async, on a worker, with `fallback`.
pub fn async_worker_or<R, A, F, Fut, B>(
    ask: Ask,
    fallback: B,
    classify: Classify<R>,
    op: F,
) -> impl Future<Output = R>
where
    R: Send + 'static,
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R>,
    B: FnOnce(TimeoutError) -> R,
{
    let call = worker::async_worker(ask, classify, op);
    Rim::new(call, |ending| or(ending, fallback))
}
