//! Runs operations as tasks on the Tokio runtime of the caller.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;

use crate::context::frame::{self, Frame};
use crate::outcome::Returned;
use crate::outcome::{Cause, TimeoutError};
use crate::time::Clock;
use crate::time::test_clock::PolledParticipant;
use crate::unwind::{self, Payload};

use crate::token::{CancelToken, checks};

use super::TokenParam;
use super::cell::{Elsewhere, OperationStage, SpawnedCall, Typed};
use super::large::is_large;
use super::options::CallOptions;
use super::propagated::Propagated;
use super::report::{Classify, ReportBuilder};
use super::start::{CallStart, start};
use super::view::Caller;
use super::waiter::{InFlight, Launch, WaitingCall};

/// An operation that is spawned at the first poll.
pub struct Spawn<R, A, F, Fut> {
    options: CallOptions,
    classify: Classify<R>,
    op: F,
    shape: PhantomData<fn(A) -> Fut>,
}

impl<R, A, F, Fut> Spawn<R, A, F, Fut> {
    pub(crate) fn new(options: CallOptions, classify: Classify<R>, op: F) -> Self {
        Self {
            options,
            classify,
            op,
            shape: PhantomData,
        }
    }
}

impl<R, A, F, Fut> fmt::Debug for Spawn<R, A, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn").finish_non_exhaustive()
    }
}

impl<R, A, F, Fut> Launch for Spawn<R, A, F, Fut>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: Send + 'static,
{
    fn launch(self) -> Result<InFlight, TimeoutError> {
        let Self {
            options,
            classify,
            op,
            ..
        } = self;
        let started = start(options, Clock::of_task().resolved())?;
        let Ok(runtime) = Handle::try_current() else {
            return Err(started.terms.not_started(Cause::NoRuntime, None));
        };
        Ok(if const { is_large::<R>() } {
            // A large result is stored as `Box<R>`.
            let op = move |param| {
                let op = op(param);
                async move { Box::new(op.await) }
            };
            spawn(&runtime, started, move |result| classify(result), op)
        } else {
            spawn(&runtime, started, classify, op)
        })
    }
}

fn spawn<R, A, F, Fut, K>(runtime: &Handle, started: CallStart, classify: K, op: F) -> InFlight
where
    A: TokenParam,
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: Send + 'static,
    K: Fn(&R) -> Returned<'_> + Send + Sync + 'static,
{
    let value = Typed {
        stage: Mutex::new(OperationStage::<Elsewhere, R>::Empty),
        classify,
    };
    let (call, token) = SpawnedCall::new(started, Caller::Polled, value);
    runtime.spawn(OnTask {
        participant: PolledParticipant::of_operation(call.view().terms.name()),
        side: Some(TaskSide::new(call.clone(), token)),
        start: Some(op),
        param: PhantomData,
        future: None,
    });
    InFlight::new(call, None)
}

/// Spawns the future of `op` on the current runtime.
pub(crate) fn async_task<R, A, F, Fut, M>(
    options: CallOptions,
    classify: Classify<R>,
    op: F,
    convert: M,
) -> WaitingCall<R, Spawn<R, A, F, Fut>, M> {
    WaitingCall::new(Spawn::new(options, classify, op), convert)
}

/// The operation's side of a call, for operations of any type.
struct TaskSide {
    call: SpawnedCall,
    frame: Frame,
    propagated: Propagated,
    started: bool,
}

impl TaskSide {
    fn new(call: SpawnedCall, token: CancelToken) -> Self {
        Self {
            call,
            frame: Frame::Token(token),
            propagated: Propagated::to_task(),
            started: false,
        }
    }

    /// The operation is about to be polled. Returns `false` if it was withdrawn before the first
    /// poll.
    fn start(&mut self) -> bool {
        if !self.started {
            self.started = self.call.view().start_on(None);
        }
        self.started
    }

    /// Runs a part of the operation inside its call. Returns its panic.
    fn inside(&mut self, part: &mut dyn FnMut()) -> Option<Payload> {
        let Self {
            frame, propagated, ..
        } = self;
        propagated.inside(&mut || {
            let _inside = frame::enter(frame);
            part();
        })
    }

    /// The operation has ended, with a value in `value` or by `panic`.
    fn conclude(self, value: &mut dyn Any, panic: Option<Payload>) {
        let Self {
            call,
            frame,
            mut propagated,
            ..
        } = self;
        drop(frame);
        propagated.on_behalf(|captures| {
            let mut builder = ReportBuilder::new(call.view().terms);
            let panic = panic
                .or_else(|| captures.inside(&mut || call.op().store_value(value, &mut builder)));
            call.conclude(panic, builder, captures);
            call.token().wake_caller();
        });
    }

    /// Drops an operation that never started.
    fn discard<F>(&mut self, op: F) {
        self.propagated.on_behalf(|_| unwind::drop_catching(op));
    }

    /// The operation was destroyed unfinished.
    fn destroyed(mut self) {
        let call = &self.call;
        self.propagated.on_behalf(|captures| {
            let panic = captures.inside(&mut || call.destroyed());
            debug_assert!(panic.is_none(), "this code catches all panics");
        });
    }
}

pin_project! {
    /// The task. The operation starts at its first poll and ends with its future. It is destroyed
    /// unfinished if the runtime drops the task earlier.
    struct OnTask<F, A, Fut> {
        participant: Option<PolledParticipant>,
        // `None` once the operation has ended.
        side: Option<TaskSide>,
        // `None` from the first poll on.
        start: Option<F>,
        param: PhantomData<fn(A)>,
        #[pin]
        future: Option<Fut>,
    }

    impl<F, A, Fut> PinnedDrop for OnTask<F, A, Fut> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let Some(mut side) = this.side.take() else {
                return;
            };
            let token = side.call.token();
            // A task that is destroyed after its cancellation has stopped.
            token.note_error();
            token.cancel(Cause::Cancelled, None);
            if side.started {
                let panic = side.inside(&mut || this.future.set(None));
                unwind::drop_catching(panic);
                side.destroyed();
            } else {
                // The operation never started: the caller withdraws it.
                side.discard(this.start.take());
            }
        }
    }
}

impl<F, A, Fut> Future for OnTask<F, A, Fut>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    Fut: Future,
    Fut::Output: 'static,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut participant = self.as_mut().project().participant.take();
        let polled = PolledParticipant::poll(&mut participant, context, |context| {
            self.as_mut().poll_operation(context)
        });
        *self.project().participant = participant;
        polled
    }
}

impl<F, A, Fut> OnTask<F, A, Fut>
where
    A: TokenParam,
    F: FnOnce(A) -> Fut,
    Fut: Future,
    Fut::Output: 'static,
{
    fn poll_operation(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(side) = this.side else {
            return Poll::Ready(());
        };
        if !side.start() {
            side.discard(this.start.take());
            *this.side = None;
            return Poll::Ready(());
        }
        let mut value = None;
        let mut panic = side.inside(&mut || {
            if let Some(start) = this.start.take() {
                this.future
                    .set(Some(start(A::create(CancelToken::current))));
            }
            let future = this.future.as_mut().as_pin_mut();
            match future.map(|future| future.poll(context)) {
                Some(Poll::Ready(output)) => value = Some(output),
                _ => checks::at_await(|| Some(CancelToken::current())),
            }
        });
        if value.is_none() && panic.is_none() {
            return Poll::Pending;
        }
        // A panic while the variables of the operation are dropped is a panic of the operation.
        if let Some(late) = side.inside(&mut || this.future.set(None)) {
            unwind::drop_catching(value.take());
            unwind::drop_catching(panic.replace(late));
        }
        if let Some(side) = this.side.take() {
            side.conclude(&mut value, panic);
        }
        Poll::Ready(())
    }
}
