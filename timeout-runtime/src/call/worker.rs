//! Operations on worker threads.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Mutex;

use crate::deadline::Clock;
use crate::error::{Cause, TimeoutError};
use crate::returns::Ending;
use crate::workers::{self, Job};
use crate::{forked, parking};

use super::TokenParam;
use super::ask::Ask;
use super::carried::Carried;
use super::large::is_large;
use super::open::{Opening, open};
use super::record::{Apart, ByCall, Stage, Typed};
use super::remote::{Launch, Launched, RemoteCall, handed_over};
use super::report::Classify;
use super::sides::Caller;

/// Hands an operation to a worker. A large result is stored as `Box<R>`.
fn start<R, A, F, K>(
    opening: Opening,
    caller: Caller,
    classify: K,
    op: F,
) -> Result<Launched, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    R: Send + 'static,
    K: Fn(&R) -> Ending<'_> + Send + Sync + 'static,
{
    if const { is_large::<F>() } {
        // Called in its box, the operation is not moved again.
        let op: Box<dyn FnOnce(A) -> R + Send> = Box::new(op);
        start_small(opening, caller, classify, op)
    } else {
        start_small(opening, caller, classify, op)
    }
}

fn start_small<R, A, F, K>(
    opening: Opening,
    caller: Caller,
    classify: K,
    op: F,
) -> Result<Launched, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    R: Send + 'static,
    K: Fn(&R) -> Ending<'_> + Send + Sync + 'static,
{
    if const { is_large::<R>() } {
        let op = move |param| Box::new(op(param));
        hand_in(opening, caller, move |result| classify(result), op)
    } else {
        hand_in(opening, caller, classify, op)
    }
}

fn hand_in<R, A, F, K>(
    opening: Opening,
    caller: Caller,
    classify: K,
    op: F,
) -> Result<Launched, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    R: Send + 'static,
    K: Fn(&R) -> Ending<'_> + Send + Sync + 'static,
{
    let op = Typed {
        stage: Mutex::new(Stage::Ready(ByCall(op, PhantomData::<fn(A)>))),
        classify,
    };
    submit(Apart::open(opening, caller, op))
}

fn submit(call: Apart) -> Result<Launched, TimeoutError> {
    let Ok(place) = workers::submit(Job::Call(call.clone(), Carried::capture())) else {
        call.leave();
        call.op().clear();
        return Err(call.sides().terms.not_started(Cause::NoWorker, None));
    };
    Ok(Launched::new(call, Some(place)))
}

/// Runs `op` on a worker while the calling thread is parked.
pub(crate) fn sync_worker<R, A, F, K>(ask: Ask, classify: K, op: F) -> Result<R, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    R: Send + 'static,
    K: Fn(&R) -> Ending<'_> + Send + Sync + 'static,
{
    let opening = open(ask, Clock::Real)?;
    let launched = start(opening, Caller::Parked, classify, op)?;
    if const { is_large::<R>() } {
        park::<Box<R>>(launched).map(|result| *result)
    } else {
        park(launched)
    }
}

fn park<T: 'static>(launched: Launched) -> Result<T, TimeoutError> {
    let mut answer = None::<T>;
    let ending = launched.park(&mut answer);
    handed_over(ending, answer)
}

/// An operation that is to be built and polled on a worker.
pub struct OnWorker<R, A, F, Fut> {
    ask: Ask,
    classify: Classify<R>,
    op: F,
    shape: PhantomData<fn(A) -> Fut>,
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
    fn launch(self) -> Result<Launched, TimeoutError> {
        let Self {
            ask, classify, op, ..
        } = self;
        let opening = open(ask, Clock::Real)?;
        // A parked caller finds out before it parks; this one might never be polled again.
        if forked::is_child() {
            return Err(opening.terms.not_started(Cause::NoWorker, None));
        }
        if const { is_large::<Fut>() } {
            let op = move |param| parking::block_on(Box::pin(op(param)));
            start(opening, Caller::Polled, classify, op)
        } else {
            let op = move |param| parking::block_on(op(param));
            start(opening, Caller::Polled, classify, op)
        }
    }
}

/// Builds and polls the future of `op` on a worker.
pub(crate) fn async_worker<R, A, F, Fut, M>(
    ask: Ask,
    classify: Classify<R>,
    op: F,
    finish: M,
) -> RemoteCall<R, OnWorker<R, A, F, Fut>, M> {
    let launch = OnWorker {
        ask,
        classify,
        op,
        shape: PhantomData,
    };
    RemoteCall::new(launch, finish)
}
