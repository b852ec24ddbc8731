//! Operations on worker threads.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::deadline::Clock;
use crate::error::{Cause, TimeoutError};
use crate::event::WorkerName;
use crate::token::CancelToken;
use crate::workers::{self, Job};
use crate::{frame, parking};

use super::TokenParam;
use super::ask::Ask;
use super::open::open;
use super::record::{Operation, Record};
use super::remote::{Launch, Launched, RemoteCall};
use super::sides::{Caller, Classify};

impl<F, R> Job for Record<F, R>
where
    F: FnOnce(CancelToken) -> R + Send + 'static,
    R: Send + 'static,
{
    fn run(self: Arc<Self>, worker: WorkerName, free: &mut dyn FnMut()) {
        if !self.sides().start_on(Some(worker)) {
            return;
        }
        let Some(operation) = self.take_operation() else {
            return;
        };
        let Operation {
            op,
            carried,
            classify,
        } = operation;
        let token = CancelToken(self.clone());
        let run = || {
            let mut frame = self.frame();
            let _inside = frame::enter(&mut frame);
            op(token)
        };
        carried.within(run, |ended| self.conclude(ended, classify, free));
    }
}

/// Hands the operation to a worker.
fn launch<R, F>(
    ask: Ask,
    caller: Caller,
    classify: Classify<R>,
    op: F,
) -> Result<Launched<R>, TimeoutError>
where
    F: FnOnce(CancelToken) -> R + Send + 'static,
    R: Send + 'static,
{
    let record = Record::open(open(ask, Clock::Real)?, caller, classify, op);
    let Ok(place) = workers::submit(record.clone()) else {
        record.leave();
        return Err(record.sides().terms.not_started(Cause::NoWorker, None));
    };
    Ok(Launched::new(record, Some(place)))
}

/// Runs `op` on a worker while the calling thread is parked.
pub(crate) fn sync_worker<R, A, F>(
    ask: Ask,
    classify: Classify<R>,
    op: F,
) -> Result<R, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R + Send + 'static,
    R: Send + 'static,
{
    let op = move |token| op(A::of(|| token));
    launch(ask, Caller::Parked, classify, op)?.park()
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

impl<R, A, F, Fut> Launch<R> for OnWorker<R, A, F, Fut>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R>,
    R: Send + 'static,
{
    fn launch(self) -> Result<Launched<R>, TimeoutError> {
        let Self {
            ask, classify, op, ..
        } = self;
        let op = move |token| parking::block_on(op(A::of(|| token)));
        launch(ask, Caller::Polled, classify, op)
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
