//! Operations as tasks of the caller's Tokio runtime.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;

use crate::deadline::Clock;
use crate::error::{Cause, TimeoutError};
use crate::frame::{self, Frame};
use crate::token::CancelToken;
use crate::unwind;

use super::TokenParam;
use super::ask::Ask;
use super::open::open;
use super::record::{Operation, Record};
use super::remote::{Launch, Launched, RemoteCall};
use super::sides::{Caller, Classify, Ended};

/// An operation that is to be spawned.
pub struct Spawn<R, A, F, Fut> {
    ask: Ask,
    classify: Classify<R>,
    op: F,
    shape: PhantomData<fn(A) -> Fut>,
}

impl<R, A, F, Fut> fmt::Debug for Spawn<R, A, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn").finish_non_exhaustive()
    }
}

impl<R, A, F, Fut> Launch<R> for Spawn<R, A, F, Fut>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: Send + 'static,
{
    fn launch(self) -> Result<Launched<R>, TimeoutError> {
        let Self {
            ask, classify, op, ..
        } = self;
        let opening = open(ask, Clock::Tokio.settled())?;
        let Ok(runtime) = Handle::try_current() else {
            return Err(opening.terms.not_started(Cause::NoRuntime, None));
        };
        let op = move |token| op(A::of(|| token));
        let record = Record::open(opening, Caller::Polled, classify, op);
        runtime.spawn(OnTask {
            record: Some(record.clone()),
            classify: None,
            frame: Frame::Outside,
            muted: Vec::new(),
            future: None,
        });
        Ok(Launched::new(record, None))
    }
}

/// Spawns the future of `op` on the runtime around the call.
pub(crate) fn async_task<R, A, F, Fut, M>(
    ask: Ask,
    classify: Classify<R>,
    op: F,
    finish: M,
) -> RemoteCall<R, Spawn<R, A, F, Fut>, M> {
    let launch = Spawn {
        ask,
        classify,
        op,
        shape: PhantomData,
    };
    RemoteCall::new(launch, finish)
}

pin_project! {
    /// The operation's side: it starts at the first poll, and ends with its future, or unfinished where it is dropped.
    struct OnTask<F, R, Fut>
    where
        F: Send,
        F: 'static,
        R: Send,
        R: 'static,
    {
        // Until the operation has ended.
        record: Option<Arc<Record<F, R>>>,
        // From the first poll on.
        classify: Option<Classify<R>>,
        // The call's from the first poll on.
        frame: Frame,
        muted: Vec<u64>,
        #[pin]
        future: Option<Fut>,
    }

    impl<F, R, Fut> PinnedDrop for OnTask<F, R, Fut>
    where
        F: Send,
        F: 'static,
        R: Send,
        R: 'static,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let Some(record) = this.record.take() else {
                return;
            };
            record.fire(Cause::Cancelled, None);
            if this.future.is_none() {
                // Never polled, never started: the caller withdraws it.
                unwind::dispose(record.take_operation());
                return;
            }
            frame::mute(this.muted, || {
                {
                    let _inside = frame::enter(this.frame);
                    unwind::contain(|| this.future.set(None));
                }
                record.destroyed();
            });
        }
    }
}

impl<F, R, Fut> Future for OnTask<F, R, Fut>
where
    F: FnOnce(CancelToken) -> Fut + Send + 'static,
    Fut: Future<Output = R>,
    R: Send + 'static,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(record) = this.record else {
            return Poll::Ready(());
        };
        let mut start = None;
        if this.future.is_none() {
            if !record.sides().start_on(None) {
                *this.record = None;
                return Poll::Ready(());
            }
            if let Some(operation) = record.take_operation() {
                let Operation {
                    op,
                    carried,
                    classify,
                } = operation;
                *this.classify = Some(classify);
                let token = CancelToken(record.clone());
                *this.frame = record.frame();
                *this.muted = carried.into_muted();
                start = Some(move || op(token));
            }
        }
        let ended: Poll<Ended<R>> = frame::mute(this.muted, || {
            let _inside = frame::enter(this.frame);
            let polled = unwind::catch(|| {
                if let Some(start) = start {
                    this.future.set(Some(start()));
                }
                match this.future.as_mut().as_pin_mut() {
                    Some(future) => future.poll(context),
                    None => Poll::Pending,
                }
            });
            let ended = match polled {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(value)) => Ok(value),
                Err(payload) => Err(payload),
            };
            // A panic while the operation's own variables are dropped is the operation's.
            Poll::Ready(match unwind::catch(|| this.future.set(None)) {
                Ok(()) => ended,
                Err(payload) => {
                    unwind::dispose(ended);
                    Err(payload)
                }
            })
        });
        ended.map(|ended| {
            if let (Some(record), Some(classify)) = (this.record.take(), *this.classify) {
                *this.frame = Frame::Outside;
                frame::mute(this.muted, || record.conclude(ended, classify, || {}));
            }
        })
    }
}
