//! The places where a [`Timeout`](crate::Timeout) runs an operation, as types of a
//! [`Runner`](crate::Runner).
//!
//! | place | sync operation | async operation |
//! |---|---|---|
//! | [`ByDefault`] | on a worker thread | polled in place |
//! | [`Inline`] | on the caller's thread | polled in place |
//! | [`OnWorker`] | on a worker thread | built and polled on a worker thread |
//! | `AsTask` | | spawned on the Tokio runtime around the call |
//!
//! The implementations of [`SyncPlace`] and [`AsyncPlace`] say what an operation must be for a
//! place. Only this crate implements these traits.

use std::fmt::{self, Debug};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::call::convert::IntoReturn;
use crate::call::inline;
use crate::call::late_value::{
    Disarm, GuardedFuture, LateFunction, LateGuard, OnLate, disarm, guard_future, guard_operation,
    guard_returned_future,
};
use crate::call::options::CallOptions;
use crate::call::returned_future::{ReturnedFutureCall, returned_future};
#[cfg(feature = "tokio")]
use crate::call::task;
use crate::call::waiter::{InFlight, Launch, WaitingCall};
use crate::call::worker;
use crate::outcome::TimeoutError;
use crate::outcome::{Returned, of_result};
use crate::token::CancelToken;

/// Sync operations run on a worker, async ones are polled in place.
#[derive(Clone, Copy, Debug)]
pub struct ByDefault;

/// The operation runs where its caller is, and may borrow.
#[derive(Clone, Copy, Debug)]
pub struct Inline;

/// The operation runs on a worker thread.
#[derive(Clone, Copy, Debug)]
pub struct OnWorker;

/// The operation runs as a task of the Tokio runtime around the call.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug)]
pub struct AsTask;

/// A place where the sync operation `F` can run. `L` is the function for late results, or `()`.
#[diagnostic::on_unimplemented(
    message = "a sync operation cannot run at the place `{Self}`",
    note = "a task runs async operations only, with `call_async` or `outcome_async`"
)]
pub trait SyncPlace<F, T, E, L>: Place {
    #[doc(hidden)]
    fn run<M: IntoReturn<Result<T, E>>>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> M::Output;
}

/// A place where the async operation `F`, which returns the future `Fut`, can run. `L` is the
/// function for late results, or `()`.
pub trait AsyncPlace<F, Fut, T, E, L>: Place {
    #[doc(hidden)]
    fn start<M>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> Self::Call<Result<T, E>, L, F, Fut, M>;

    #[doc(hidden)]
    #[allow(clippy::type_complexity)] // Each parameter is part of the call's type.
    fn poll<M: IntoReturn<Result<T, E>>>(
        call: Pin<&mut Self::Call<Result<T, E>, L, F, Fut, M>>,
        context: &mut Context<'_>,
    ) -> Poll<M::Output>;
}

/// Any place.
pub trait Place: sealed::Sealed {
    /// The future of a call. Its type depends on the place alone, without a condition: so the
    /// compiler can always tell whether the future is `Send`.
    #[doc(hidden)]
    type Call<R, L, F, Fut, M>;
}

mod sealed {
    /// Keeps other crates from adding places.
    pub trait Sealed {}

    impl Sealed for super::ByDefault {}
    impl Sealed for super::Inline {}
    impl Sealed for super::OnWorker {}
    #[cfg(feature = "tokio")]
    impl Sealed for super::AsTask {}
}

impl Place for ByDefault {
    type Call<R, L, F, Fut, M> = <Inline as Place>::Call<R, L, F, Fut, M>;
}

impl Place for Inline {
    type Call<R, L, F, Fut, M> = InPlace<R, L, F, Fut, M>;
}

impl Place for OnWorker {
    type Call<R, L, F, Fut, M> = Apart<Self, R, L, F, Fut, M>;
}

#[cfg(feature = "tokio")]
impl Place for AsTask {
    type Call<R, L, F, Fut, M> = Apart<Self, R, L, F, Fut, M>;
}

/// What a result means that is still wrapped with its function for late results.
fn of_guarded<T, E: Debug, L>(result: &LateGuard<Result<T, E>, L>) -> Returned<'_> {
    of_result(result.value())
}

impl<F, T, E, L> SyncPlace<F, T, E, L> for ByDefault
where
    OnWorker: SyncPlace<F, T, E, L>,
{
    fn run<M: IntoReturn<Result<T, E>>>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> M::Output {
        OnWorker::run(options, late, op, convert)
    }
}

impl<F, T, E, L> SyncPlace<F, T, E, L> for Inline
where
    F: FnOnce(CancelToken) -> Result<T, E>,
    E: Debug,
    L: LateFunction<Result<T, E>>,
{
    fn run<M: IntoReturn<Result<T, E>>>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> M::Output {
        let op = guard_operation(late.on_late(), op);
        disarm(convert).into_return(inline::sync_inline(options, of_guarded, op))
    }
}

impl<F, T, E, L> SyncPlace<F, T, E, L> for OnWorker
where
    F: FnOnce(CancelToken) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: Debug + Send + 'static,
    L: LateFunction<Result<T, E>> + Send + 'static,
{
    fn run<M: IntoReturn<Result<T, E>>>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> M::Output {
        let op = guard_operation(late.on_late(), op);
        disarm(convert).into_return(worker::sync_worker(options, of_guarded, op))
    }
}

impl<F, Fut, T, E, L> AsyncPlace<F, Fut, T, E, L> for ByDefault
where
    Inline: AsyncPlace<F, Fut, T, E, L>,
{
    fn start<M>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> Self::Call<Result<T, E>, L, F, Fut, M> {
        Inline::start(options, late, op, convert)
    }

    fn poll<M: IntoReturn<Result<T, E>>>(
        call: Pin<&mut Self::Call<Result<T, E>, L, F, Fut, M>>,
        context: &mut Context<'_>,
    ) -> Poll<M::Output> {
        Inline::poll(call, context)
    }
}

impl<F, Fut, T, E, L> AsyncPlace<F, Fut, T, E, L> for Inline
where
    F: FnOnce(CancelToken) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    E: Debug,
    L: LateFunction<Result<T, E>>,
{
    fn start<M>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> Self::Call<Result<T, E>, L, F, Fut, M> {
        let op = guard_future(late.on_late(), Lazy::new(op));
        returned_future(options, of_guarded, |()| op, disarm(convert))
    }

    fn poll<M: IntoReturn<Result<T, E>>>(
        call: Pin<&mut Self::Call<Result<T, E>, L, F, Fut, M>>,
        context: &mut Context<'_>,
    ) -> Poll<M::Output> {
        call.poll(context)
    }
}

impl<F, Fut, T, E, L> AsyncPlace<F, Fut, T, E, L> for OnWorker
where
    F: FnOnce(CancelToken) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, E>> + 'static,
    T: Send + 'static,
    E: Debug + Send + 'static,
    L: LateFunction<Result<T, E>> + Send + 'static,
{
    fn start<M>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> Self::Call<Result<T, E>, L, F, Fut, M> {
        apart(options, late, op, convert)
    }

    fn poll<M: IntoReturn<Result<T, E>>>(
        call: Pin<&mut Self::Call<Result<T, E>, L, F, Fut, M>>,
        context: &mut Context<'_>,
    ) -> Poll<M::Output> {
        call.poll(context)
    }
}

#[cfg(feature = "tokio")]
impl<F, Fut, T, E, L> AsyncPlace<F, Fut, T, E, L> for AsTask
where
    F: FnOnce(CancelToken) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Debug + Send + 'static,
    L: LateFunction<Result<T, E>> + Send + 'static,
{
    fn start<M>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> Self::Call<Result<T, E>, L, F, Fut, M> {
        apart(options, late, op, convert)
    }

    fn poll<M: IntoReturn<Result<T, E>>>(
        call: Pin<&mut Self::Call<Result<T, E>, L, F, Fut, M>>,
        context: &mut Context<'_>,
    ) -> Poll<M::Output> {
        call.poll(context)
    }
}

pin_project! {
    /// A call of an async operation at the place `P`.
    #[must_use = "futures do nothing unless polled"]
    pub(super) struct Running<P, R, L, F, Fut, M>
    where
        P: Place,
    {
        #[pin]
        call: P::Call<R, L, F, Fut, M>,
    }
}

impl<P: Place, T, E, L, F, Fut, M> Running<P, Result<T, E>, L, F, Fut, M> {
    pub(super) fn new(options: CallOptions, late: L, op: F, convert: M) -> Self
    where
        P: AsyncPlace<F, Fut, T, E, L>,
    {
        Self {
            call: P::start(options, late, op, convert),
        }
    }
}

impl<P, T, E, L, F, Fut, M> Future for Running<P, Result<T, E>, L, F, Fut, M>
where
    P: AsyncPlace<F, Fut, T, E, L>,
    M: IntoReturn<Result<T, E>>,
{
    type Output = M::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        P::poll(self.project().call, context)
    }
}

pin_project! {
    /// The future of an operation that is called at the first poll, inside its call.
    #[doc(hidden)]
    pub struct Lazy<F, Fut> {
        op: Option<F>,
        #[pin]
        future: Option<Fut>,
    }
}

impl<F, Fut> Lazy<F, Fut> {
    fn new(op: F) -> Self {
        Self {
            op: Some(op),
            future: None,
        }
    }
}

impl<F: FnOnce(CancelToken) -> Fut, Fut: Future> Future for Lazy<F, Fut> {
    type Output = Fut::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Fut::Output> {
        let mut this = self.project();
        if let Some(op) = this.op.take() {
            this.future.set(Some(op(CancelToken::current())));
        }
        match this.future.as_pin_mut() {
            Some(future) => future.poll(context),
            None => panic!("an operation that panicked was polled again"),
        }
    }
}

/// A call whose operation is polled in place.
type InPlace<R, L, F, Fut, M> =
    ReturnedFutureCall<LateGuard<R, L>, LazyGuarded<R, L, F, Fut>, Disarm<M>>;

/// The operation of such a call.
type LazyGuarded<R, L, F, Fut> = GuardedFuture<Lazy<F, Fut>, R, L>;

/// A call whose operation runs apart from its caller.
type Apart<P, R, L, F, Fut, M> = WaitingCall<LateGuard<R, L>, LaunchAt<P, R, L, F, Fut>, Disarm<M>>;

fn apart<P, R, L, F, Fut, M>(
    options: CallOptions,
    late: L,
    op: F,
    convert: M,
) -> Apart<P, R, L, F, Fut, M>
where
    L: LateFunction<R>,
{
    let launch = LaunchAt {
        options,
        late: late.on_late(),
        op,
        shape: PhantomData,
    };
    WaitingCall::new(launch, disarm(convert))
}

/// Launches an operation at the place `P` at the first poll.
#[doc(hidden)]
pub struct LaunchAt<P, R, L, F, Fut> {
    options: CallOptions,
    late: OnLate<R, L>,
    op: F,
    shape: PhantomData<fn(P) -> Fut>,
}

impl<T, E, L, F, Fut> Launch for LaunchAt<OnWorker, Result<T, E>, L, F, Fut>
where
    F: FnOnce(CancelToken) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, E>> + 'static,
    T: Send + 'static,
    E: Debug + Send + 'static,
    L: Send + 'static,
{
    fn launch(self) -> Result<InFlight, TimeoutError> {
        let op = guard_returned_future(self.late, self.op);
        worker::OnWorker::new(self.options, of_guarded, op).launch()
    }
}

#[cfg(feature = "tokio")]
impl<T, E, L, F, Fut> Launch for LaunchAt<AsTask, Result<T, E>, L, F, Fut>
where
    F: FnOnce(CancelToken) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Debug + Send + 'static,
    L: Send + 'static,
{
    fn launch(self) -> Result<InFlight, TimeoutError> {
        let op = guard_returned_future(self.late, self.op);
        task::Spawn::new(self.options, of_guarded, op).launch()
    }
}

impl<F, Fut> Debug for Lazy<F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").finish_non_exhaustive()
    }
}

impl<P, R, L, F, Fut> Debug for LaunchAt<P, R, L, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchAt").finish_non_exhaustive()
    }
}
