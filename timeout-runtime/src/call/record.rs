//! The record of a call whose operation runs apart from its caller: one allocation for the token, both sides, and the value.

use std::sync::{Arc, Mutex};

use crate::frame::Frame;
use crate::sync::lock;
use crate::token::CancelToken;
use crate::token::node::{Node, NodeRef, Watch};
use crate::unwind;

use super::carried::Carried;
use super::open::Opening;
use super::sides::{Caller, Classify, Ended, Late, Report, Sides, State};
use super::verdict::Phase;

/// An operation that has not run yet, and what it takes along.
pub(crate) struct Operation<F, R> {
    pub(crate) op: F,
    pub(crate) carried: Carried,
    pub(crate) classify: Classify<R>,
}

/// The operation before it runs, and its answer once it is there for the caller.
enum Stage<F, R> {
    Ready(Operation<F, R>),
    Empty,
    Answered(Ended<R>, Report),
    /// It has ended without an answer that counts.
    Stopped(Report),
}

impl<F, R> Late for Mutex<Stage<F, R>> {
    fn put(&self, report: Report) {
        *lock(self) = Stage::Stopped(report);
    }

    fn take(&self) -> Option<Report> {
        let mut stage = lock(self);
        match std::mem::replace(&mut *stage, Stage::Empty) {
            Stage::Stopped(report) => Some(report),
            other => {
                *stage = other;
                None
            }
        }
    }
}

/// What a call's token node carries.
pub(crate) struct Cargo<F, R> {
    state: State,
    stage: Mutex<Stage<F, R>>,
}

/// A call, which is its own token.
pub(crate) type Record<F, R> = Node<Cargo<F, R>>;

impl<F: Send + 'static, R: Send + 'static> Record<F, R> {
    /// A call whose operation is queued.
    pub(crate) fn open(
        opening: Opening,
        caller: Caller,
        classify: Classify<R>,
        op: F,
    ) -> Arc<Self> {
        let Opening { terms, parents } = opening;
        let watch = match caller {
            Caller::Parked if terms.fires() => Watch::Watched,
            Caller::Parked | Caller::Polled => Watch::Clocked,
        };
        let carried = Carried::capture();
        let operation = Operation {
            op,
            carried,
            classify,
        };
        let cargo = Cargo {
            state: State::queued(caller),
            stage: Mutex::new(Stage::Ready(operation)),
        };
        let record = Self::new(terms, watch, &parents, cargo);
        let token: NodeRef = record.clone();
        token.attend();
        record
    }

    pub(crate) fn sides(&self) -> Sides<'_> {
        Sides {
            terms: self.terms(),
            state: &self.cargo.state,
            late: &self.cargo.stage,
            token: Some(self),
        }
    }

    /// The frame in which the operation runs.
    pub(crate) fn frame(self: &Arc<Self>) -> Frame {
        Frame::Token(CancelToken(self.clone()))
    }

    /// The operation, for who runs it or withdraws it.
    pub(crate) fn take_operation(&self) -> Option<Operation<F, R>> {
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
    pub(crate) fn conclude(&self, ended: Ended<R>, classify: Classify<R>, free: impl FnOnce()) {
        let sides = self.sides();
        let (ended, report) = sides.assess(ended, classify);
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
        match self.cargo.state.caller {
            // It wakes without running anybody's code.
            Caller::Parked => {
                free();
                self.wake_owner();
            }
            Caller::Polled => {
                self.wake_owner();
                free();
            }
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
