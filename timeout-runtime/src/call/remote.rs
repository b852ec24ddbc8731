//! Waiting for an operation that runs apart from its caller: parked, or polled.

use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::alarm::CallerAlarm;
use crate::error::TimeoutError;
use crate::tick::Tick;
use crate::token::node::Node;
use crate::workers::{self, Place};
use crate::{parking, unwind};

use super::record::Record;
use super::rim::Finish;
use super::sides::{Ended, Look, Report, Sides, Wait};
use super::verdict::Phase;

/// The caller's view of a record, whatever its operation is.
pub(crate) trait Remote<R>: Send + Sync {
    fn sides(&self) -> Sides<'_>;
    fn token(&self) -> &Node;
    fn take_answer(&self) -> Option<(Ended<R>, Report)>;
    fn leave(&self) -> Phase;
}

impl<F: Send + 'static, R: Send + 'static> Remote<R> for Record<F, R> {
    fn sides(&self) -> Sides<'_> {
        Record::sides(self)
    }

    fn token(&self) -> &Node {
        self
    }

    fn take_answer(&self) -> Option<(Ended<R>, Report)> {
        Record::take_answer(self)
    }

    fn leave(&self) -> Phase {
        Record::leave(self)
    }
}

/// A call whose operation is on its way. Dropping it before the verdict means that the caller has gone.
pub struct Launched<R> {
    record: Arc<dyn Remote<R>>,
    /// Where it was handed in; `None` for a task.
    place: Option<Place>,
    decided: bool,
}

impl<R> Launched<R> {
    pub(crate) fn new(record: Arc<dyn Remote<R>>, place: Option<Place>) -> Self {
        Self {
            record,
            place,
            decided: false,
        }
    }

    /// The verdict, or until when there will be none unless the caller is woken.
    fn look(&mut self, wait: &mut Wait) -> Result<Result<R, TimeoutError>, Tick> {
        let phase = match self.record.sides().look(wait) {
            Look::Wait(until) => return Err(until),
            Look::Answered => Phase::Answered,
            Look::Over => self.leave(),
        };
        self.decided = true;
        Ok(match phase {
            Phase::Answered => Ok(self.collect()),
            phase => {
                let scarce = matches!(self.place, Some(Place::Queued(_)));
                Err(self.record.sides().unanswered(phase, scarce))
            }
        })
    }

    fn leave(&mut self) -> Phase {
        let phase = self.record.leave();
        if phase == Phase::Queued
            && let Some(Place::Queued(ticket)) = &self.place
        {
            workers::withdraw(ticket);
        }
        phase
    }

    /// Takes the answer: the call has ended with it. A panic goes on here.
    fn collect(&mut self) -> R {
        let (ended, report) = self.take();
        self.record.sides().answered(report);
        if let Some(Place::Handed(handed)) = self.place.take() {
            workers::remember(handed);
        }
        ended.unwrap_or_else(|payload| resume_unwind(payload))
    }

    fn take(&self) -> (Ended<R>, Report) {
        match self.record.take_answer() {
            Some(answer) => answer,
            None => unreachable!("an answer is stored before it is published"),
        }
    }

    /// Parks the thread until the verdict, after a spin if that has been worth it.
    pub(crate) fn park(mut self) -> Result<R, TimeoutError> {
        let mut wait = Wait::default();
        let mut waker = None;
        let mut may_spin = true;
        let mut is_registered = false;
        loop {
            let until = match self.look(&mut wait) {
                Ok(ending) => return ending,
                Err(until) => until,
            };
            if std::mem::take(&mut may_spin) && self.spin(until) {
                continue;
            }
            // Register, then look, then park.
            if std::mem::take(&mut is_registered) {
                parking::park_until(until);
            } else {
                let waker = waker.get_or_insert_with(parking::waker);
                self.record.token().set_owner(waker);
                is_registered = true;
            }
        }
    }

    fn spin(&self, until: Tick) -> bool {
        match &self.place {
            Some(Place::Handed(handed)) => {
                let sides = self.record.sides();
                handed.spin(&sides.terms.policy().spin, until)
            }
            _ => false,
        }
    }
}

impl<R> fmt::Debug for Launched<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched").finish_non_exhaustive()
    }
}

impl<R> Drop for Launched<R> {
    fn drop(&mut self) {
        if self.decided {
            return;
        }
        let phase = self.leave();
        let answer = (phase == Phase::Answered).then(|| {
            let (ended, report) = self.take();
            match ended {
                Ok(value) => unwind::dispose(value),
                Err(payload) => unwind::dispose(payload),
            }
            report
        });
        self.record.sides().dropped(phase, answer);
    }
}

/// What sends an operation on its way.
pub trait Launch<R> {
    #[doc(hidden)]
    fn launch(self) -> Result<Launched<R>, TimeoutError>;
}

/// A call that is launched at the first poll and then waited for.
///
/// Cancel safe in this sense: a future that is dropped before its first poll has called nothing; one that is dropped later has
/// its operation's token fired, and leaves the operation abandoned until it ends.
#[must_use = "futures do nothing unless polled"]
pub struct RemoteCall<R, L, M>(Stage<R, L, M>);

enum Stage<R, L, M> {
    Before(L, M),
    Waiting(Launched<R>, Wait, CallerAlarm, M),
    Done,
}

// Nothing in it is pinned: the operation's future lives elsewhere.
impl<R, L, M> Unpin for RemoteCall<R, L, M> {}

impl<R, L, M> RemoteCall<R, L, M> {
    pub(crate) fn new(launch: L, finish: M) -> Self {
        Self(Stage::Before(launch, finish))
    }
}

impl<R, L, M> fmt::Debug for RemoteCall<R, L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteCall").finish_non_exhaustive()
    }
}

impl<R, L: Launch<R>, M: Finish<R>> Future for RemoteCall<R, L, M> {
    type Output = M::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        let stage = &mut self.0;
        // Whatever panics from here on, the call is over.
        let (mut launched, mut wait, mut alarm, finish) =
            match std::mem::replace(stage, Stage::Done) {
                Stage::Waiting(launched, wait, alarm, finish) => (launched, wait, alarm, finish),
                Stage::Before(launch, finish) => match launch.launch() {
                    Ok(launched) => (launched, Wait::default(), CallerAlarm::default(), finish),
                    Err(error) => return Poll::Ready(finish.finish(Err(error))),
                },
                Stage::Done => panic!("a finished call was polled again"),
            };
        launched.record.token().set_owner(context.waker());
        match launched.look(&mut wait) {
            Ok(ending) => Poll::Ready(finish.finish(ending)),
            Err(until) => {
                alarm.set(launched.record.sides().terms.clock(), until, context);
                *stage = Stage::Waiting(launched, wait, alarm, finish);
                Poll::Pending
            }
        }
    }
}
