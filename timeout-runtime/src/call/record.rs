//! The record of a call whose operation runs apart from its caller: one allocation for the token, both sides, the operation and what
//! it gives.
//!
//! Only the tail of a record knows what the operation is; what is done to a record is compiled once, and not for each function.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Mutex;

use crate::event::WorkerName;
use crate::frame::{self, Frame};
use crate::returns::Ending;
use crate::sync::lock;
use crate::token::CancelToken;
use crate::token::node::{Cargo, Head, Node, NodeRef, Watch};
use crate::unwind::{self, Payload};

use super::TokenParam;
use super::carried::Carried;
use super::open::Opening;
use super::sides::{Caller, Found, Late, Report, Sides, State};
use super::verdict::Phase;

/// What a call's token node carries.
pub(crate) struct Record<O: ?Sized = dyn Operation> {
    state: State,
    op: O,
}

impl<O: Operation + 'static> Cargo for Record<O> {
    fn record(&self) -> Option<&Record> {
        Some(self)
    }
}

/// An operation, and then what it has given, whatever the types of both. Users' values are dropped, and users' functions called, under no
/// lock.
pub(crate) trait Operation: Late + Send + Sync {
    /// Runs the operation, notes when it has ended and what its value means, and keeps that. A panic passes; if it came from the second
    /// of these, the value is kept all the same.
    fn run(&self, token: CancelToken, found: &mut Found<'_>);

    /// As `run`, with a value that was made elsewhere; it is taken out of `value`, an `Option` of it.
    #[cfg(feature = "tokio")]
    fn keep(&self, value: &mut dyn Any, found: &mut Found<'_>);

    /// The value becomes the answer, or a panic in its place.
    fn answer(&self, panic: Option<Payload>, report: Report);

    /// Takes the answer: a value goes to `place`, an `Option` of it, or is dropped if that is something else. A panic is given back.
    fn take_answer(&self, place: &mut dyn Any) -> Option<(Option<Payload>, Report)>;

    /// Drops the operation, or what it has given.
    fn clear(&self);
}

/// An operation of one type.
pub(crate) struct Typed<F, R, K> {
    stage: Mutex<Stage<F, R>>,
    classify: K,
}

enum Stage<F, R> {
    Ready(F),
    /// It runs, or is over.
    Empty,
    Value(R),
    Answered(Result<R, Payload>, Report),
    /// It has ended without an answer that counts.
    Stopped(Report),
}

impl<F, R, K> Typed<F, R, K> {
    /// An operation that waits for somebody to run it.
    pub(crate) fn ready(op: F, classify: K) -> Self {
        Self {
            stage: Mutex::new(Stage::Ready(op)),
            classify,
        }
    }

    /// The place of the value of an operation that is elsewhere.
    #[cfg(feature = "tokio")]
    pub(crate) fn value(classify: K) -> Self {
        Self {
            stage: Mutex::new(Stage::Empty),
            classify,
        }
    }

    fn put(&self, stage: Stage<F, R>) {
        let before = std::mem::replace(&mut *lock(&self.stage), stage);
        unwind::dispose(before);
    }

    fn take(&self) -> Stage<F, R> {
        std::mem::replace(&mut *lock(&self.stage), Stage::Empty)
    }
}

impl<F, R, K> Late for Typed<F, R, K> {
    fn put(&self, report: Report) {
        Typed::put(self, Stage::Stopped(report));
    }

    fn take(&self) -> Option<Report> {
        match Typed::take(self) {
            Stage::Stopped(report) => Some(report),
            other => {
                Typed::put(self, other);
                None
            }
        }
    }
}

/// How an operation is run by who has its record.
pub(crate) trait Run<R> {
    fn run(self, token: CancelToken) -> R;
}

/// By a call.
pub(crate) struct ByCall<F, A>(F, PhantomData<fn(A)>);

impl<F, A> ByCall<F, A> {
    pub(crate) fn new(op: F) -> Self {
        Self(op, PhantomData)
    }
}

impl<R, A: TokenParam, F: FnOnce(A) -> R> Run<R> for ByCall<F, A> {
    fn run(self, token: CancelToken) -> R {
        (self.0)(A::of(|| token))
    }
}

/// Not at all: it is run elsewhere.
#[cfg(feature = "tokio")]
pub(crate) enum Elsewhere {}

#[cfg(feature = "tokio")]
impl<R> Run<R> for Elsewhere {
    fn run(self, _: CancelToken) -> R {
        match self {}
    }
}

/// A value that is kept once it has been looked at, whatever comes of that.
struct Kept<'a, F, R> {
    value: Option<R>,
    stage: &'a Mutex<Stage<F, R>>,
}

impl<F, R> Drop for Kept<'_, F, R> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            *lock(self.stage) = Stage::Value(value);
        }
    }
}

impl<F, R, K: Fn(&R) -> Ending<'_>> Typed<F, R, K> {
    fn keep_value(&self, value: R, found: &mut Found<'_>) {
        let kept = Kept {
            value: Some(value),
            stage: &self.stage,
        };
        if let Some(value) = &kept.value {
            found.value(value, &self.classify);
        }
    }
}

impl<F, R, K> Operation for Typed<F, R, K>
where
    F: Run<R> + Send,
    R: Send + 'static,
    K: Fn(&R) -> Ending<'_> + Send + Sync,
{
    fn run(&self, token: CancelToken, found: &mut Found<'_>) {
        if let Stage::Ready(op) = self.take() {
            self.keep_value(op.run(token), found);
        }
    }

    #[cfg(feature = "tokio")]
    fn keep(&self, value: &mut dyn Any, found: &mut Found<'_>) {
        if let Some(value) = value.downcast_mut::<Option<R>>().and_then(Option::take) {
            self.keep_value(value, found);
        }
    }

    fn answer(&self, panic: Option<Payload>, report: Report) {
        let mut stage = lock(&self.stage);
        let value = match (std::mem::replace(&mut *stage, Stage::Empty), panic) {
            (Stage::Value(value), None) => {
                *stage = Stage::Answered(Ok(value), report);
                return;
            }
            (value, Some(panic)) => {
                *stage = Stage::Answered(Err(panic), report);
                value
            }
            (other, None) => other,
        };
        drop(stage);
        unwind::dispose(value);
    }

    fn take_answer(&self, place: &mut dyn Any) -> Option<(Option<Payload>, Report)> {
        match self.take() {
            Stage::Answered(Ok(value), report) => {
                match place.downcast_mut::<Option<R>>() {
                    Some(place) => *place = Some(value),
                    None => unwind::dispose(value),
                }
                Some((None, report))
            }
            Stage::Answered(Err(panic), report) => Some((Some(panic), report)),
            other => {
                self.put(other);
                None
            }
        }
    }

    fn clear(&self) {
        unwind::dispose(self.take());
    }
}

/// A call with a record.
#[derive(Clone)]
pub(crate) struct Apart(NodeRef);

impl Apart {
    /// A call whose operation is queued.
    pub(crate) fn open<O: Operation + 'static>(opening: Opening, caller: Caller, op: O) -> Self {
        let Opening { terms, parents } = opening;
        let watch = match caller {
            Caller::Parked if terms.fires() => Watch::Watched,
            Caller::Parked | Caller::Polled => Watch::Clocked,
        };
        let state = State::queued(caller);
        let node = Node::new(terms, watch, &parents, Record { state, op });
        node.attend();
        Self(node)
    }

    fn record(&self) -> &Record {
        match self.0.cargo.record() {
            Some(record) => record,
            None => unreachable!("it was made with one"),
        }
    }

    pub(crate) fn op(&self) -> &dyn Operation {
        &self.record().op
    }

    pub(crate) fn token(&self) -> &Head {
        &self.0
    }

    pub(crate) fn cancel_token(&self) -> CancelToken {
        CancelToken(self.0.clone())
    }

    pub(crate) fn sides(&self) -> Sides<'_> {
        let Record { state, op } = self.record();
        Sides {
            terms: self.0.terms(),
            state,
            late: op,
            token: Some(&self.0),
        }
    }

    /// The frame in which the operation runs.
    pub(crate) fn frame(&self) -> Frame {
        Frame::Token(self.cancel_token())
    }

    /// Runs the operation on the worker, as its caller's thread would, unless it was withdrawn. `free` is called once nothing is left that could
    /// take time.
    pub(crate) fn work(self, carried: Carried, worker: WorkerName, free: &mut dyn FnMut()) {
        let sides = self.sides();
        if !sides.start_on(Some(worker)) {
            return;
        }
        let run = |found: &mut Found<'_>| {
            let mut frame = self.frame();
            let _inside = frame::enter(&mut frame);
            self.op().run(self.cancel_token(), found);
        };
        let found = Found::nothing(sides.terms);
        carried.within(found, run, |panic, found| self.conclude(panic, found, free));
    }

    /// The operation has ended. Its answer goes to the caller if it counts and the caller is there; else its value is dropped
    /// here and reported. `free` is called before the caller is woken, so that his next call finds the worker free, unless waking him runs
    /// somebody else's code.
    pub(crate) fn conclude(
        &self,
        panic: Option<Payload>,
        found: Found<'_>,
        free: &mut dyn FnMut(),
    ) {
        let (sides, op) = (self.sides(), self.op());
        let report = sides.report(panic.as_ref(), found);
        if sides.stands(&report) {
            op.answer(panic, report);
            if !sides.answer()
                && let Some((panic, report)) = op.take_answer(&mut ())
            {
                unwind::dispose(panic);
                sides.stop(report);
            }
        } else {
            op.clear();
            unwind::dispose(panic);
            sides.stop(report);
        }
        match self.record().state.caller {
            // It wakes without running anybody's code.
            Caller::Parked => {
                free();
                self.0.wake_owner();
            }
            Caller::Polled => {
                self.0.wake_owner();
                free();
            }
        }
    }

    /// The operation was destroyed before it had ended. A caller who waits gets `Cancelled`; one who has gone is told late.
    #[cfg(feature = "tokio")]
    pub(crate) fn destroyed(&self) {
        self.sides().destroyed();
        self.0.wake_owner();
    }

    /// The caller gives up; an operation that nobody has taken is withdrawn and dropped.
    pub(crate) fn leave(&self) -> Phase {
        let phase = self.sides().leave();
        self.0.forget_owner();
        if phase == Phase::Queued {
            self.op().clear();
        }
        phase
    }
}
