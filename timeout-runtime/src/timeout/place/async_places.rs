//! What an async operation must be for each place, and the calls that run it there.

use std::fmt::{self, Debug};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::call::convert::IntoReturn;
use crate::call::late_value::{
    Disarm, GuardedFuture, LateFunction, LateGuard, OnLate, disarm, guard_future,
    guard_returned_future,
};
use crate::call::options::CallOptions;
use crate::call::returned_future::{ReturnedFutureCall, returned_future};
#[cfg(feature = "tokio")]
use crate::call::task;
use crate::call::waiter::{InFlight, Launch, WaitingCall};
use crate::call::worker;
use crate::outcome::TimeoutError;
use crate::token::CancelToken;

#[cfg(feature = "tokio")]
use super::AsTask;
use super::{AsyncPlace, ByDefault, Inline, OnWorker, Place, of_guarded};

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
    pub(crate) struct Running<P, R, L, F, Fut, M>
    where
        P: Place,
    {
        #[pin]
        call: P::Call<R, L, F, Fut, M>,
    }
}

impl<P: Place, T, E, L, F, Fut, M> Running<P, Result<T, E>, L, F, Fut, M> {
    pub(crate) fn new(options: CallOptions, late: L, op: F, convert: M) -> Self
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
pub(super) type InPlace<R, L, F, Fut, M> =
    ReturnedFutureCall<LateGuard<R, L>, LazyGuarded<R, L, F, Fut>, Disarm<M>>;

/// The operation of such a call.
type LazyGuarded<R, L, F, Fut> = GuardedFuture<Lazy<F, Fut>, R, L>;

/// A call whose operation runs apart from its caller.
pub(super) type Elsewhere<P, R, L, F, Fut, M> =
    WaitingCall<LateGuard<R, L>, LaunchAt<P, R, L, F, Fut>, Disarm<M>>;

fn apart<P, R, L, F, Fut, M>(
    options: CallOptions,
    late: L,
    op: F,
    convert: M,
) -> Elsewhere<P, R, L, F, Fut, M>
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
