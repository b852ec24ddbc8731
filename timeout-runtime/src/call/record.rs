//! The record of a call whose operation runs apart from its caller: one allocation for the token, both sides, and the value.

use std::sync::{Arc, Mutex};
use std::task::Waker;

use crate::frame::Frame;
use crate::sync::lock;
use crate::token::CancelToken;
use crate::token::node::{Node, NodeRef, Watch};
use crate::unwind;

use super::carried::Carried;
use super::open::Opening;
use super::sides::{Classify, Ended, Report, Sides, State};
use super::verdict::Phase;

/// An operation that has not run yet, and what it takes along.
pub(crate) struct Operation<F> {
    pub(crate) op: F,
    pub(crate) carried: Carried,
}

/// The operation before it runs, and its answer once it is there for the caller.
enum Stage<F, R> {
    Ready(Operation<F>),
    Empty,
    Answered(Ended<R>, Report),
}

/// What a call's token node carries.
pub(crate) struct Cargo<F, R> {
    state: State,
    /// Whether the caller is a parked thread, which wakes without running anybody's code.
    parked: bool,
    classify: Classify<R>,
    stage: Mutex<Stage<F, R>>,
}

/// A call, which is its own token.
pub(crate) type Record<F, R> = Node<Cargo<F, R>>;

/// Who fires the token at its deadline.
pub(crate) enum Caller {
    /// A parked thread: it does so itself.
    Parked(Waker),
    /// A future: the timer does, however busy its executor is.
    Polled,
}

impl<F: Send + 'static, R: Send + 'static> Record<F, R> {
    /// A call whose operation is queued.
    pub(crate) fn open(
        opening: Opening,
        caller: Caller,
        classify: Classify<R>,
        op: F,
    ) -> Arc<Self> {
        let Opening { terms, parents } = opening;
        let parked = matches!(caller, Caller::Parked(_));
        let (watch, owner) = match caller {
            Caller::Parked(waker) if terms.fires() => (Watch::Watched, Some(waker)),
            Caller::Parked(waker) => (Watch::Clocked, Some(waker)),
            Caller::Polled => (Watch::Clocked, None),
        };
        let carried = Carried::capture();
        let cargo = Cargo {
            state: State::queued(),
            parked,
            classify,
            stage: Mutex::new(Stage::Ready(Operation { op, carried })),
        };
        let record = Self::new(terms, watch, owner, &parents, cargo);
        let token: NodeRef = record.clone();
        token.attend();
        record
    }

    pub(crate) fn sides(&self) -> Sides<'_> {
        Sides {
            terms: self.terms(),
            state: &self.cargo.state,
            token: Some(self),
        }
    }

    /// The frame in which the operation runs.
    pub(crate) fn frame(self: &Arc<Self>) -> Frame {
        Frame::new(self.terms().clone(), Some(CancelToken(self.clone())))
    }

    /// The operation, for who runs it or withdraws it.
    pub(crate) fn take_operation(&self) -> Option<Operation<F>> {
        let mut stage = lock(&self.cargo.stage);
        match std::mem::replace(&mut *stage, Stage::Empty) {
            Stage::Ready(operation) => Some(operation),
            other => {
                *stage = other;
                None
            }
        }
    }

    /// The answer, for the caller who has found it published, or for the operation if publishing failed.
    pub(crate) fn take_answer(&self) -> Option<(Ended<R>, Report)> {
        let mut stage = lock(&self.cargo.stage);
        match std::mem::replace(&mut *stage, Stage::Empty) {
            Stage::Answered(ended, report) => Some((ended, report)),
            other => {
                *stage = other;
                None
            }
        }
    }

    /// The operation has ended. Its answer goes to the caller if it counts and the caller is there; else its value is dropped
    /// here and reported. `free` is called once whoever ran it has nothing more to do that could take time: before the caller is
    /// woken, so that his next call finds the worker free, unless waking him runs somebody else's code.
    pub(crate) fn conclude(&self, ended: Ended<R>, free: impl FnOnce()) {
        let sides = self.sides();
        let (ended, report) = sides.assess(ended, self.cargo.classify);
        let refused = if sides.stands(&report) {
            *lock(&self.cargo.stage) = Stage::Answered(ended, report);
            if sides.answer() {
                None
            } else {
                self.take_answer()
            }
        } else {
            Some((ended, report))
        };
        if let Some((ended, report)) = refused {
            match ended {
                Ok(value) => unwind::dispose(value),
                Err(payload) => unwind::dispose(payload),
            }
            sides.stop(report);
        }
        if self.cargo.parked {
            free();
            self.wake_owner();
        } else {
            self.wake_owner();
            free();
        }
    }

    /// The operation was destroyed before it had ended. A caller who waits gets `Cancelled`; one who has gone is told late.
    #[cfg(feature = "tokio")]
    pub(crate) fn destroyed(&self) {
        self.sides().destroyed();
        self.wake_owner();
    }

    /// The caller gives up; an operation that nobody has taken is withdrawn and dropped.
    pub(crate) fn leave(&self) -> Phase {
        let phase = self.sides().leave();
        self.forget_owner();
        if phase == Phase::Queued {
            unwind::dispose(self.take_operation());
        }
        phase
    }
}
