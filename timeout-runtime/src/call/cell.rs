//! The record of a call whose operation runs apart from its caller: one allocation for the token, both view, the operation and what
//! it gives.
//!
//! Only the tail of a record knows what the operation is; what is done to a record is compiled once, and not for each function.

use std::any::Any;
use std::marker::PhantomData;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::event::WorkerName;
use crate::frame::{self, Frame};
use crate::propagator::Captures;
use crate::returns::Ending;
use crate::token::CancelToken;
use crate::token::node::{Head, Node, NodeRef};
use crate::unwind::{self, Payload};

use super::TokenParam;
use super::propagated::PropagatedToWorker;
use super::report::{Found, LateReport, Report};
use super::start::CallStart;
use super::verdict::Phase;
use super::view::{CallView, Caller, State};

/// What a call's token node carries.
pub(crate) struct CallCell<O: ?Sized = dyn Operation> {
    state: State,
    op: O,
}

/// An operation, and then what it has given, whatever the types of both. Users' values are dropped, and users' functions called, under no
/// lock.
pub(crate) trait Operation: LateReport + Send + Sync {
    /// Runs the operation, notes when it has ended and what its value means, and keeps that. A panic passes; if it came from the second
    /// of these, the value is kept all the same.
    fn run(&self, call: &SpawnedCall, found: &mut Found<'_>);

    /// As `run`, with a value that was made before; it is taken out of `value`, an `Option` of it.
    fn keep(&self, value: &mut dyn Any, found: &mut Found<'_>);

    /// The value becomes the answer, or a panic in its place.
    fn answer(&self, panic: Option<Payload>, report: Report);

    /// Takes the answer: a value goes to `place`, an `Option` of it, or is dropped if that is something else. A panic is given back.
    fn take_answer(&self, place: &mut dyn Any) -> Option<(Option<Payload>, Report)>;

    /// Drops the operation, or what it has given.
    fn clear(&self);

    /// The operation as the place of its late report.
    fn late(&self) -> &dyn LateReport;
}

/// An operation of one type. There is one for each function, so it is kept small.
pub(crate) struct Typed<F, R, K> {
    pub(crate) stage: Mutex<Stage<F, R>>,
    pub(crate) classify: K,
}

pub(crate) enum Stage<F, R> {
    Ready(F),
    /// It runs, or is over.
    Empty,
    Value(R),
    Answered(Result<R, Payload>, Report),
    /// It has ended without an answer that counts.
    Stopped(Report),
}

impl<F, R, K> Typed<F, R, K> {
    fn hold(&self) -> MutexGuard<'_, Stage<F, R>> {
        match self.stage.lock() {
            Ok(stage) => stage,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn swap(&self, stage: Stage<F, R>) -> Stage<F, R> {
        mem::replace(&mut *self.hold(), stage)
    }
}

impl<F, R, K> LateReport for Typed<F, R, K> {
    fn put(&self, report: Report) {
        unwind::drop_catching(self.swap(Stage::Stopped(report)));
    }

    fn take(&self) -> Option<Report> {
        match self.swap(Stage::Empty) {
            Stage::Stopped(report) => Some(report),
            other => {
                self.swap(other);
                None
            }
        }
    }
}

/// How an operation is run by who has its record.
pub(crate) trait RunOperation<R> {
    fn run(self, call: &SpawnedCall) -> R;
}

/// By a call.
pub(crate) struct ByCall<F, A>(pub(crate) F, pub(crate) PhantomData<fn(A)>);

impl<R, A: TokenParam, F: FnOnce(A) -> R> RunOperation<R> for ByCall<F, A> {
    fn run(self, call: &SpawnedCall) -> R {
        (self.0)(A::of(|| call.cancel_token()))
    }
}

/// Not at all: it is run elsewhere.
#[cfg(feature = "tokio")]
pub(crate) enum Elsewhere {}

#[cfg(feature = "tokio")]
impl<R> RunOperation<R> for Elsewhere {
    fn run(self, _: &SpawnedCall) -> R {
        match self {}
    }
}

/// A value that is kept once it has been looked at, whatever comes of that.
struct Held<'a, F, R, K> {
    value: Option<R>,
    by: &'a Typed<F, R, K>,
}

impl<F, R, K> Drop for Held<'_, F, R, K> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.by.swap(Stage::Value(value));
        }
    }
}

impl<F, R, K> Operation for Typed<F, R, K>
where
    F: RunOperation<R> + Send,
    R: Send + 'static,
    K: Fn(&R) -> Ending<'_> + Send + Sync,
{
    fn run(&self, call: &SpawnedCall, found: &mut Found<'_>) {
        if let Stage::Ready(op) = self.swap(Stage::Empty) {
            let mut value = Some(op.run(call));
            self.keep(&mut value, found);
        }
    }

    fn keep(&self, value: &mut dyn Any, found: &mut Found<'_>) {
        let Some(value) = value.downcast_mut::<Option<R>>() else {
            return;
        };
        let held = Held {
            value: value.take(),
            by: self,
        };
        if let Some(value) = &held.value {
            found.ended();
            found.means(frame::outside(|| (self.classify)(value)));
        }
    }

    fn answer(&self, panic: Option<Payload>, report: Report) {
        let mut stage = self.hold();
        *stage = match (mem::replace(&mut *stage, Stage::Empty), panic) {
            (Stage::Value(value), None) => Stage::Answered(Ok(value), report),
            (value, Some(panic)) => {
                *stage = Stage::Answered(Err(panic), report);
                drop(stage);
                return unwind::drop_catching(value);
            }
            (other, None) => other,
        };
    }

    fn take_answer(&self, place: &mut dyn Any) -> Option<(Option<Payload>, Report)> {
        match self.swap(Stage::Empty) {
            Stage::Answered(Ok(value), report) => {
                match place.downcast_mut::<Option<R>>() {
                    Some(place) => *place = Some(value),
                    None => unwind::drop_catching(value),
                }
                Some((None, report))
            }
            Stage::Answered(Err(panic), report) => Some((Some(panic), report)),
            other => {
                self.swap(other);
                None
            }
        }
    }

    fn clear(&self) {
        unwind::drop_catching(self.swap(Stage::Empty));
    }

    fn late(&self) -> &dyn LateReport {
        self
    }
}

/// A call with a record.
#[derive(Clone)]
pub(crate) struct SpawnedCall(Arc<Node<CallCell>>);

impl SpawnedCall {
    /// A call whose operation is queued.
    pub(crate) fn new<O: Operation + 'static>(started: CallStart, caller: Caller, op: O) -> Self {
        let (head, parents) = started.head(caller);
        let state = State::queued(caller);
        let cargo = CallCell { state, op };
        Self(Arc::new(Node { head, cargo })).link(&parents)
    }

    fn link(self, parents: &[NodeRef]) -> Self {
        let CancelToken(node) = self.cancel_token();
        node.link(parents);
        node.ensure_timer();
        self
    }

    pub(crate) fn op(&self) -> &dyn Operation {
        &self.0.cargo.op
    }

    pub(crate) fn token(&self) -> &Head {
        &self.0
    }

    pub(crate) fn cancel_token(&self) -> CancelToken {
        CancelToken(NodeRef::Call(self.0.clone()))
    }

    pub(crate) fn view(&self) -> CallView<'_> {
        let CallCell { state, op } = &self.0.cargo;
        CallView {
            terms: self.0.terms(),
            state,
            late: op.late(),
            token: Some(&self.0),
        }
    }

    /// The frame in which the operation runs.
    pub(crate) fn frame(&self) -> Frame {
        Frame::Token(self.cancel_token())
    }

    /// Runs the operation on the worker, as its caller's thread would, unless it was withdrawn. `free` is called once nothing is left that could
    /// take time, with the record let go of: before the caller is woken, so that his next call finds the worker free, unless waking him runs
    /// somebody else's code.
    pub(crate) fn work(
        self,
        propagated: PropagatedToWorker,
        worker: WorkerName,
        free: &mut dyn FnMut(),
    ) {
        let view = self.view();
        if !view.start_on(Some(worker)) {
            self.op().clear();
            return;
        }
        let run = |found: &mut Found<'_>| {
            let mut frame = self.frame();
            let _inside = frame::enter(&mut frame);
            self.op().run(&self, found);
        };
        let found = Found::nothing(view.terms);
        let caller = view.state.caller;
        propagated.within(found, &run, |panic, found, taken| {
            self.conclude(panic, found, taken);
            if caller == Caller::Polled {
                self.0.wake_caller();
            }
        });
        // A parked thread wakes without running anybody's code.
        let owner = self.0.take_caller_waker();
        // Perhaps the last who holds the listener of a policy, callbacks, or a reason.
        unwind::drop_catching(self);
        free();
        if let Some(owner) = owner {
            owner.wake();
        }
    }

    /// The operation has ended. Its answer goes to the caller if it counts and the caller is there, who then finds nothing of what was `taken` along still in use; else
    /// its value is dropped here and reported. Who called this wakes the caller then.
    pub(crate) fn conclude(&self, panic: Option<Payload>, found: Found<'_>, taken: &mut Captures) {
        let (view, op) = (self.view(), self.op());
        let report = found.report(panic.as_ref());
        if !view.stands(&report) {
            self.stop(panic, report, taken);
            return;
        }
        op.answer(panic, report);
        // If the caller leaves right after this look, the late report is made outside.
        if !view.is_left() {
            taken.let_go();
        }
        if view.answer() {
            return;
        }
        if let Some((panic, report)) = op.take_answer(&mut ()) {
            self.stop(panic, report, taken);
        }
    }

    /// The operation has ended without an answer that counts.
    fn stop(&self, panic: Option<Payload>, report: Report, taken: &mut Captures) {
        let mut report = Some(report);
        let mut panic = Some(panic);
        let panic_here = taken.inside(&mut || {
            self.op().clear();
            unwind::drop_catching(panic.take());
            if let Some(report) = report.take() {
                self.view().stop(report);
            }
        });
        debug_assert!(panic_here.is_none(), "nothing of ours panics");
    }

    /// The operation was destroyed before it had ended. A caller who waits gets `Cancelled`; one who has gone is told late.
    #[cfg(feature = "tokio")]
    pub(crate) fn destroyed(&self) {
        self.view().destroyed();
        self.0.wake_caller();
    }

    /// The caller gives up. After `Phase::Queued` the operation never runs; it still has to be dropped.
    pub(crate) fn leave(&self) -> Phase {
        let phase = self.view().leave();
        self.0.forget_caller_waker();
        phase
    }

    /// The caller withdraws a queued operation, which still has to be dropped; `false` if it has been
    /// started.
    pub(crate) fn withdraw(&self) -> bool {
        let is_withdrawn = self.view().withdraw();
        if is_withdrawn {
            self.0.forget_caller_waker();
        }
        is_withdrawn
    }
}
