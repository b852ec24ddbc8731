//! Waiting for an operation that runs apart from its caller: parked, or polled.

use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::deadline::Deadline;
use crate::error::TimeoutError;
use crate::token::node::Node;
use crate::{parking, unwind, workers};

use super::alarm::CallerAlarm;
use super::record::Record;
use super::sides::{Ended, Look, Report, Shared, Wait};
use super::verdict::Phase;

/// The caller's view of a record, whatever its operation is.
pub(crate) trait Remote<R>: Send + Sync {
    fn shared(&self) -> &Shared;
    fn token(&self) -> &Node;
    fn take_answer(&self) -> Option<(Ended<R>, Report)>;
    fn leave(&self) -> Phase;
}

impl<F: Send + 'static, R: Send + 'static> Remote<R> for Record<F, R> {
    fn shared(&self) -> &Shared {
        Record::shared(self)
    }

    fn token(&self) -> &Node {
        Record::token(self)
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
    /// Its place in the queue, if there was no worker for it.
    ticket: Option<workers::Ticket>,
    decided: bool,
}

impl<R> Launched<R> {
    pub(crate) fn new(record: Arc<dyn Remote<R>>, ticket: Option<workers::Ticket>) -> Self {
        Self {
            record,
            ticket,
            decided: false,
        }
    }

    /// The verdict, or until when there will be none unless the caller is woken.
    fn look(&mut self, wait: &mut Wait) -> Result<Result<R, TimeoutError>, Deadline> {
        let phase = match self.record.shared().look(wait, Some(self.record.token())) {
            Look::Wait(until) => return Err(until),
            Look::Answered => Phase::Answered,
            Look::Over => self.leave(),
        };
        self.decided = true;
        Ok(match phase {
            Phase::Answered => Ok(self.collect()),
            phase => {
                let scarce = self.ticket.is_some();
                let token = Some(self.record.token());
                Err(self.record.shared().unanswered(phase, token, scarce))
            }
        })
    }

    fn leave(&mut self) -> Phase {
        let phase = self.record.leave();
        if phase == Phase::Queued
            && let Some(ticket) = &self.ticket
        {
            workers::withdraw(ticket);
        }
        phase
    }

    /// Takes the answer: the call has ended with it. A panic goes on here.
    fn collect(&self) -> R {
        let (ended, report) = self.take();
        self.record
            .shared()
            .answered(report, Some(self.record.token()));
        ended.unwrap_or_else(|payload| resume_unwind(payload))
    }

    fn take(&self) -> (Ended<R>, Report) {
        match self.record.take_answer() {
            Some(answer) => answer,
            None => unreachable!("an answer is stored before it is published"),
        }
    }

    /// Parks the thread until the verdict; `waker` is its own.
    pub(crate) fn park(mut self, waker: &Waker) -> Result<R, TimeoutError> {
        let mut wait = Wait::default();
        loop {
            match self.look(&mut wait) {
                Ok(ending) => return ending,
                Err(until) => {
                    parking::park_until(until.instant());
                    self.record.token().set_owner(waker);
                }
            }
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
        self.record
            .shared()
            .dropped(phase, Some(self.record.token()), answer);
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
pub struct RemoteCall<R, L>(Stage<R, L>);

enum Stage<R, L> {
    Before(Option<L>),
    Waiting(Launched<R>, Wait, CallerAlarm),
    Done,
}

// Nothing in it is pinned: the operation's future lives elsewhere.
impl<R, L> Unpin for RemoteCall<R, L> {}

impl<R, L> RemoteCall<R, L> {
    pub(crate) fn new(launch: L) -> Self {
        Self(Stage::Before(Some(launch)))
    }
}

impl<R, L> fmt::Debug for RemoteCall<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteCall").finish_non_exhaustive()
    }
}

impl<R, L: Launch<R>> Future for RemoteCall<R, L> {
    type Output = Result<R, TimeoutError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let stage = &mut self.0;
        if let Stage::Before(launch) = stage
            && let Some(launch) = launch.take()
        {
            // If launching panics the call is over.
            *stage = Stage::Done;
            match launch.launch() {
                Ok(launched) => {
                    *stage = Stage::Waiting(launched, Wait::default(), CallerAlarm::default());
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let Stage::Waiting(launched, wait, alarm) = stage else {
            panic!("a finished call was polled again");
        };
        launched.record.token().set_owner(context.waker());
        match launched.look(wait) {
            Err(until) => {
                alarm.set(until, context);
                Poll::Pending
            }
            Ok(ending) => {
                *stage = Stage::Done;
                Poll::Ready(ending)
            }
        }
    }
}
