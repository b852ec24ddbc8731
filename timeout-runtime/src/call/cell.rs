//! The shared record of a call whose operation runs on a worker or as a task. One allocation holds
//! its token, its state, its operation and its result.
//!
//! Only the last field depends on the type of the operation. Code that uses a record is compiled
//! once, not once per annotated function.

use std::any::Any;
use std::marker::PhantomData;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::context::frame::{self, Frame};
use crate::context::propagator::Captures;
use crate::event::WorkerName;
use crate::outcome::Returned;
use crate::time::test_clock::Participant;
use crate::token::CancelToken;
use crate::token::node::{Head, Node, NodeRef};
use crate::unwind::{self, Payload};

use super::TokenParam;
use super::propagated::Propagated;
use super::report::{LateReport, Report, ReportBuilder};
use super::start::CallStart;
use super::verdict::Phase;
use super::view::{CallState, CallView, Caller};

/// The part of a call that its token node stores.
pub(crate) struct CallCell<O: ?Sized = dyn Operation> {
    state: CallState,
    op: O,
}

/// An operation, later its result, of any type. Users' values are dropped, and users' functions are
/// called, outside of locks.
pub(crate) trait Operation: LateReport + Send + Sync {
    /// Runs the operation, then stores its value as `store_value` does. A panic passes through. If
    /// classifying the value panics, the value is stored anyway.
    fn run(&self, builder: &mut ReportBuilder<'_>);

    /// Records the end of the operation and classifies its value, then stores the value. Takes it
    /// out of `value`, which is an `Option` of it.
    fn store_value(&self, value: &mut dyn Any, builder: &mut ReportBuilder<'_>);

    /// Turns the stored value into the result. A panic replaces the value.
    fn store_result(&self, panic: Option<Payload>, report: Report);

    /// Takes the result. Returns a panic, or writes the value to `place` if that is an `Option` of
    /// its type. Otherwise the value is dropped.
    fn take_result(&self, place: &mut dyn Any) -> Option<(Option<Payload>, Report)>;

    /// Drops the operation or its value.
    fn clear(&self);

    /// The storage for the late report.
    fn late(&self) -> &dyn LateReport;
}

/// An operation of a known type. This code is compiled for each annotated function, so it is short.
pub(crate) struct Typed<F, R, K> {
    pub(crate) stage: Mutex<OperationStage<F, R>>,
    pub(crate) classify: K,
}

pub(crate) enum OperationStage<F, R> {
    Ready(F),
    /// The operation runs or is finished.
    Empty,
    Value(R),
    Result(Result<R, Payload>, Report),
    /// The operation has ended without a result that counts.
    Stopped(Report),
}

impl<F, R, K> Typed<F, R, K> {
    fn lock(&self) -> MutexGuard<'_, OperationStage<F, R>> {
        match self.stage.lock() {
            Ok(stage) => stage,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn swap(&self, stage: OperationStage<F, R>) -> OperationStage<F, R> {
        mem::replace(&mut *self.lock(), stage)
    }
}

impl<F, R, K> LateReport for Typed<F, R, K> {
    fn put(&self, report: Report) {
        unwind::drop_catching(self.swap(OperationStage::Stopped(report)));
    }

    fn take(&self) -> Option<Report> {
        match self.swap(OperationStage::Empty) {
            OperationStage::Stopped(report) => Some(report),
            other => {
                self.swap(other);
                None
            }
        }
    }
}

/// How the owner of a record runs the operation, inside its call.
pub(crate) trait RunOperation<R> {
    fn run(self) -> R;
}

/// The operation is a function that is called with its token.
pub(crate) struct ByCall<F, A>(pub(crate) F, pub(crate) PhantomData<fn(A)>);

impl<R, A: TokenParam, F: FnOnce(A) -> R> RunOperation<R> for ByCall<F, A> {
    fn run(self) -> R {
        (self.0)(A::create(CancelToken::current))
    }
}

/// The operation is not in the record: a task polls it.
#[cfg(feature = "tokio")]
pub(crate) enum Elsewhere {}

#[cfg(feature = "tokio")]
impl<R> RunOperation<R> for Elsewhere {
    fn run(self) -> R {
        match self {}
    }
}

/// Stores its value when dropped, also if classifying the value panics.
struct ValueKeeper<'a, F, R, K> {
    value: Option<R>,
    by: &'a Typed<F, R, K>,
}

impl<F, R, K> Drop for ValueKeeper<'_, F, R, K> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.by.swap(OperationStage::Value(value));
        }
    }
}

impl<F, R, K> Operation for Typed<F, R, K>
where
    F: RunOperation<R> + Send,
    R: Send + 'static,
    K: Fn(&R) -> Returned<'_> + Send + Sync,
{
    fn run(&self, builder: &mut ReportBuilder<'_>) {
        if let OperationStage::Ready(op) = self.swap(OperationStage::Empty) {
            let mut value = Some(op.run());
            self.store_value(&mut value, builder);
        }
    }

    fn store_value(&self, value: &mut dyn Any, builder: &mut ReportBuilder<'_>) {
        let Some(value) = value.downcast_mut::<Option<R>>() else {
            return;
        };
        let keeper = ValueKeeper {
            value: value.take(),
            by: self,
        };
        if let Some(value) = &keeper.value {
            builder.record_end();
            builder.record_returned(frame::outside(|| (self.classify)(value)));
        }
    }

    fn store_result(&self, panic: Option<Payload>, report: Report) {
        let mut stage = self.lock();
        *stage = match (mem::replace(&mut *stage, OperationStage::Empty), panic) {
            (OperationStage::Value(value), None) => OperationStage::Result(Ok(value), report),
            (value, Some(panic)) => {
                *stage = OperationStage::Result(Err(panic), report);
                drop(stage);
                return unwind::drop_catching(value);
            }
            (other, None) => other,
        };
    }

    fn take_result(&self, place: &mut dyn Any) -> Option<(Option<Payload>, Report)> {
        match self.swap(OperationStage::Empty) {
            OperationStage::Result(Ok(value), report) => {
                match place.downcast_mut::<Option<R>>() {
                    Some(place) => *place = Some(value),
                    None => unwind::drop_catching(value),
                }
                Some((None, report))
            }
            OperationStage::Result(Err(panic), report) => Some((Some(panic), report)),
            other => {
                self.swap(other);
                None
            }
        }
    }

    fn clear(&self) {
        unwind::drop_catching(self.swap(OperationStage::Empty));
    }

    fn late(&self) -> &dyn LateReport {
        self
    }
}

/// A call whose operation runs on a worker or as a task.
#[derive(Clone)]
pub(crate) struct SpawnedCall(Arc<Node<CallCell>>);

// Panics of the operation are caught inside the call, and its value is behind a lock.
impl UnwindSafe for SpawnedCall {}
impl RefUnwindSafe for SpawnedCall {}

impl SpawnedCall {
    /// A call whose operation is queued, and its token.
    pub(crate) fn new<O: Operation + 'static>(
        started: CallStart,
        caller: Caller,
        op: O,
    ) -> (Self, CancelToken) {
        let (head, parents) = started.head(caller);
        let state = CallState::queued(caller);
        let cargo = CallCell { state, op };
        let node = Arc::new(Node { head, cargo });
        Self::linked(Self(node.clone()), NodeRef::Call(node), &parents)
    }

    fn linked(self, node: NodeRef, parents: &[NodeRef]) -> (Self, CancelToken) {
        node.link(parents);
        node.ensure_timer();
        (self, CancelToken(node))
    }

    pub(crate) fn op(&self) -> &dyn Operation {
        &self.0.cargo.op
    }

    pub(crate) fn token(&self) -> &Head {
        &self.0
    }

    pub(crate) fn view(&self) -> CallView<'_> {
        let CallCell { state, op } = &self.0.cargo;
        let Some(terms) = self.0.terms() else {
            unreachable!("the node of a call has its terms");
        };
        CallView {
            terms,
            state,
            late: op.late(),
            token: Some(&self.0),
        }
    }

    /// The operation has ended. Publishes its result if it counts and the caller still waits.
    /// Otherwise drops the value and emits the late event. The code that calls this wakes the
    /// caller afterwards.
    pub(crate) fn conclude(
        &self,
        panic: Option<Payload>,
        builder: ReportBuilder<'_>,
        captures: &mut Captures,
    ) {
        let (view, op) = (self.view(), self.op());
        let report = builder.build(panic.as_ref());
        if !view.counts(&report) {
            self.stop(panic, report, captures);
            return;
        }
        op.store_result(panic, report);
        // Captured values are released before the result is published, so that the caller finds
        // them unused. If the caller leaves right after this check, the late event is emitted
        // without them.
        if !view.has_caller_left() {
            captures.let_go();
        }
        if view.publish() {
            return;
        }
        if let Some((panic, report)) = op.take_result(&mut ()) {
            self.stop(panic, report, captures);
        }
    }

    /// The operation has ended without a result that counts.
    fn stop(&self, panic: Option<Payload>, report: Report, captures: &mut Captures) {
        let mut report = Some(report);
        let mut panic = Some(panic);
        let panic_here = captures.inside(&mut || {
            self.op().clear();
            unwind::drop_catching(panic.take());
            if let Some(report) = report.take() {
                self.view().stop(report);
            }
        });
        debug_assert!(panic_here.is_none(), "this code catches all panics");
    }

    /// The operation was destroyed unfinished. A caller that still waits gets `Cancelled`. If the
    /// caller has left, a late event is emitted.
    #[cfg(feature = "tokio")]
    pub(crate) fn destroyed(&self) {
        self.view().destroyed();
        self.0.wake_caller();
    }

    /// The caller leaves. After `Phase::Queued` the operation never runs, but it must still be
    /// dropped.
    pub(crate) fn leave(&self) -> Phase {
        let phase = self.view().leave();
        self.0.forget_caller_waker();
        phase
    }

    /// The caller withdraws a queued operation, which must still be dropped. Returns `false` if it
    /// has started.
    pub(crate) fn withdraw(&self) -> bool {
        let is_withdrawn = self.view().withdraw();
        if is_withdrawn {
            self.0.forget_caller_waker();
        }
        is_withdrawn
    }
}

/// The operation's side of a call whose operation runs on a worker.
pub(crate) struct WorkerSide {
    pub(crate) call: SpawnedCall,
    pub(crate) token: CancelToken,
    pub(crate) propagated: Propagated,
}

impl WorkerSide {
    /// Runs the operation on the worker, unless it was withdrawn.
    ///
    /// `free` marks the worker as free. It is called after the record is released, and before the
    /// caller is woken: the next call of that caller must find the worker free. If waking the
    /// caller runs other code (`Caller::Polled`), the caller is woken first.
    pub(crate) fn run(self, worker: WorkerName, free: &mut dyn FnMut()) {
        let Self {
            call,
            token,
            mut propagated,
        } = self;
        // It leaves the test clock last, when the caller has been woken.
        let participant = propagated.participant().cloned();
        let _on_clock = participant.as_ref().map(Participant::enter);
        let view = call.view();
        if !view.start_on(Some(worker)) {
            propagated.on_behalf(|_| call.op().clear());
            free();
            return;
        }
        let mut frame = Frame::Token(token);
        let mut run = |builder: &mut ReportBuilder<'_>| {
            let _inside = frame::enter(&mut frame);
            call.op().run(builder);
        };
        let builder = ReportBuilder::new(view.terms);
        let caller = view.state.caller;
        propagated.within(builder, &mut run, |panic, builder, captures| {
            call.conclude(panic, builder, captures);
            if caller == Caller::Polled {
                call.token().wake_caller();
            }
        });
        // Waking a parked thread runs no user code.
        let caller_waker = call.token().take_caller_waker();
        // One of these may be the last reference to a listener, to callbacks or to a reason.
        unwind::drop_catching(frame);
        unwind::drop_catching(call);
        free();
        if let Some(waker) = caller_waker {
            waker.wake();
        }
    }
}
