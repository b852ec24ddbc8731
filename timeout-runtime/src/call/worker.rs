//! Runs operations on worker threads.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::forked;
use crate::outcome::Returned;
use crate::outcome::{Cause, TimeoutError};
use crate::threads::parking;
use crate::time::Clock;

use crate::token::{CancelToken, checks};

use super::TokenParam;
use super::cell::{ByCall, OperationStage, SpawnedCall, Typed, WorkerSide};
use super::jobs::{self, Job};
use super::large::is_large;
use super::options::CallOptions;
use super::propagated::Propagated;
use super::report::Classify;
use super::start::{CallStart, start};
use super::view::Caller;
use super::waiter::{InFlight, Launch, WaitingCall, into_result};

/// Gives an operation to a worker. A large result is stored as `Box<R>`.
fn launch<R, A, F, K>(
    started: CallStart,
    caller: Caller,
    classify: K,
    op: F,
) -> Result<InFlight, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    R: Send + 'static,
    K: Fn(&R) -> Returned<'_> + Send + Sync + 'static,
{
    if const { is_large::<F>() } {
        // The box is called directly, so the operation is not moved again.
        let op: Box<dyn FnOnce(A) -> R + Send> = Box::new(op);
        launch_small(started, caller, classify, op)
    } else {
        launch_small(started, caller, classify, op)
    }
}

fn launch_small<R, A, F, K>(
    started: CallStart,
    caller: Caller,
    classify: K,
    op: F,
) -> Result<InFlight, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    R: Send + 'static,
    K: Fn(&R) -> Returned<'_> + Send + Sync + 'static,
{
    if const { is_large::<R>() } {
        let op = move |param| Box::new(op(param));
        store(started, caller, move |result| classify(result), op)
    } else {
        store(started, caller, classify, op)
    }
}

fn store<R, A, F, K>(
    started: CallStart,
    caller: Caller,
    classify: K,
    op: F,
) -> Result<InFlight, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    R: Send + 'static,
    K: Fn(&R) -> Returned<'_> + Send + Sync + 'static,
{
    let op = Typed {
        stage: Mutex::new(OperationStage::Ready(ByCall(op, PhantomData::<fn(A)>))),
        classify,
    };
    let (call, token) = SpawnedCall::new(started, caller, op);
    submit(call, token)
}

fn submit(call: SpawnedCall, token: CancelToken) -> Result<InFlight, TimeoutError> {
    let side = WorkerSide {
        call: call.clone(),
        token,
        propagated: Propagated::to_worker(call.view().terms.name()),
    };
    let Ok(place) = jobs::submit(Job::Call(side)) else {
        call.leave();
        call.op().clear();
        return Err(call.view().terms.not_started(Cause::NoWorker, None));
    };
    Ok(InFlight::new(call, Some(place)))
}

/// Runs `op` on a worker and parks the calling thread.
pub(crate) fn sync_worker<R, A, F, K>(
    options: CallOptions,
    classify: K,
    op: F,
) -> Result<R, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    R: Send + 'static,
    K: Fn(&R) -> Returned<'_> + Send + Sync + 'static,
{
    let started = start(options, Clock::of_thread())?;
    let in_flight = launch(started, Caller::Parked, classify, op)?;
    if const { is_large::<R>() } {
        park::<Box<R>>(in_flight).map(|result| *result)
    } else {
        park(in_flight)
    }
}

fn park<T: 'static>(in_flight: InFlight) -> Result<T, TimeoutError> {
    let mut result = None::<T>;
    let ending = in_flight.park(&mut result);
    into_result(ending, result)
}

/// An operation whose future is created and polled on a worker.
pub struct OnWorker<R, A, F, Fut> {
    options: CallOptions,
    classify: Classify<R>,
    op: F,
    shape: PhantomData<fn(A) -> Fut>,
}

impl<R, A, F, Fut> OnWorker<R, A, F, Fut> {
    pub(crate) fn new(options: CallOptions, classify: Classify<R>, op: F) -> Self {
        Self {
            options,
            classify,
            op,
            shape: PhantomData,
        }
    }
}

impl<R, A, F, Fut> fmt::Debug for OnWorker<R, A, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnWorker").finish_non_exhaustive()
    }
}

impl<R, A, F, Fut> Launch for OnWorker<R, A, F, Fut>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R>,
    R: Send + 'static,
{
    fn launch(self) -> Result<InFlight, TimeoutError> {
        let Self {
            options,
            classify,
            op,
            ..
        } = self;
        let started = start(options, Clock::of_thread())?;
        // A parked caller checks this before it parks. This one may never be polled again.
        if forked::is_child() {
            return Err(started.terms.not_started(Cause::NoWorker, None));
        }
        if const { is_large::<Fut>() } {
            let op = move |param| block_on(Box::pin(op(param)));
            launch(started, Caller::Polled, classify, op)
        } else {
            let op = move |param| block_on(op(param));
            launch(started, Caller::Polled, classify, op)
        }
    }
}

/// Polls the future of an operation on this worker.
fn block_on<F: Future>(future: F) -> F::Output {
    parking::block_on(PolledOperation { future })
}

pin_project! {
    /// The future of an operation, each of whose pending polls may be a point of cancellation.
    struct PolledOperation<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for PolledOperation<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.project().future.poll(context);
        if polled.is_pending() {
            checks::at_await(|| Some(CancelToken::current()));
        }
        polled
    }
}

/// Creates and polls the future of `op` on a worker.
pub(crate) fn async_worker<R, A, F, Fut, M>(
    options: CallOptions,
    classify: Classify<R>,
    op: F,
    convert: M,
) -> WaitingCall<R, OnWorker<R, A, F, Fut>, M> {
    WaitingCall::new(OnWorker::new(options, classify, op), convert)
}
