//! Waiting for an operation that runs apart from its caller: parked, or polled.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::alarm::CallerAlarm;
use crate::clock_hold::ClockHold;
use crate::error::TimeoutError;
use crate::parking::CurrentParker;
use crate::tick::Tick;
use crate::workers::{self, Place};
use crate::{background, forked, unwind};

use super::cell::SpawnedCall;
use super::large::is_large;
use super::rim::Finish;
use super::verdict::Phase;
use super::view::{Look, Wait};

/// A call whose operation is on its way. Dropping it before the verdict means that the caller has gone.
pub struct InFlight {
    call: SpawnedCall,
    /// Where it was handed in; `None` for a task.
    place: Option<Place>,
    decided: bool,
}

impl InFlight {
    pub(crate) fn new(call: SpawnedCall, place: Option<Place>) -> Self {
        Self {
            call,
            place,
            decided: false,
        }
    }

    /// The verdict, with the answer in `answer`, an `Option` of it; or until when there will be none unless the caller is woken.
    fn look(
        &mut self,
        wait: &mut Wait,
        answer: &mut dyn Any,
    ) -> Result<Result<(), TimeoutError>, Tick> {
        let phase = loop {
            match self.call.view().look(wait) {
                Look::Wait(until) => return Err(until),
                Look::Answered => break Phase::Answered,
                Look::Over => break self.leave(),
                Look::Withdraw if self.call.withdraw() => {
                    self.dispose();
                    break Phase::Queued;
                }
                // It has been started meanwhile, and may have grace.
                Look::Withdraw => {}
            }
        };
        self.decided = true;
        Ok(match phase {
            Phase::Answered => {
                self.collect(answer);
                Ok(())
            }
            phase => {
                let scarce = matches!(self.place, Some(Place::Queued(_)));
                Err(self.call.view().unanswered(phase, scarce))
            }
        })
    }

    fn leave(&mut self) -> Phase {
        let phase = self.call.leave();
        if phase == Phase::Queued {
            self.dispose();
        }
        phase
    }

    /// Has a withdrawn operation dropped, which may take long, without waiting for that. A worker that
    /// has been handed the job, or a runtime that has been handed the task, drops it anyway.
    fn dispose(&self) {
        if let Some(Place::Queued(ticket)) = &self.place {
            let job = workers::withdraw(ticket);
            let call = self.call.clone();
            background::run(move || {
                call.op().clear();
                drop(job);
            });
        }
    }

    /// Takes the answer: the call has ended with it. A panic goes on here.
    fn collect(&mut self, answer: &mut dyn Any) {
        let Some((panic, report)) = self.call.op().take_answer(answer) else {
            unreachable!("an answer is stored before it is published");
        };
        self.call.view().answered(report);
        if let Some(Place::Handed(handed)) = self.place.take() {
            workers::remember(handed);
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Parks the thread until the verdict, after a spin if that has been worth it.
    pub(crate) fn park(mut self, answer: &mut dyn Any) -> Result<(), TimeoutError> {
        let mut wait = Wait::default();
        let mut parker = None;
        let mut may_spin = true;
        let mut is_registered = false;
        loop {
            let until = match self.look(&mut wait, answer) {
                Ok(ending) => return ending,
                Err(until) => until,
            };
            if std::mem::take(&mut may_spin) && self.spin(until) {
                continue;
            }
            if parker.is_none() && forked::is_child() {
                return Err(self.left_behind());
            }
            let parker = parker.get_or_insert_with(CurrentParker::get);
            // Register, then look, then park.
            if std::mem::take(&mut is_registered) {
                parker.park_until(until);
            } else {
                self.call.token().set_caller_waker(parker.waker());
                is_registered = true;
            }
        }
    }

    /// The worker that was handed the operation is in the process that this one was forked from.
    fn left_behind(&mut self) -> TimeoutError {
        self.decided = true;
        let phase = self.leave();
        self.call.op().clear();
        self.call.view().unanswered(phase, true)
    }

    fn spin(&self, until: Tick) -> bool {
        match &self.place {
            Some(Place::Handed(handed)) => {
                let view = self.call.view();
                handed.spin(&view.terms.policy().spin, until)
            }
            _ => false,
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").finish_non_exhaustive()
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.decided {
            return;
        }
        let phase = self.leave();
        let answer = if phase == Phase::Answered {
            self.call.op().take_answer(&mut ())
        } else {
            None
        };
        let report = answer.map(|(panic, report)| {
            unwind::drop_catching(panic);
            report
        });
        self.call.view().dropped(phase, report);
    }
}

/// What sends an operation on its way.
pub trait Launch {
    #[doc(hidden)]
    fn launch(self) -> Result<InFlight, TimeoutError>;
}

/// A call whose operation is launched at the first poll and then waited for.
///
/// Cancel safe in this sense: a future that is dropped before its first poll has called nothing; one that is dropped later has
/// its operation's token fired, and leaves the operation abandoned until it ends.
#[must_use = "futures do nothing unless polled"]
pub struct WaitingCall<R, L, M> {
    stage: Stage<L>,
    finish: Option<M>,
    answer: PhantomData<fn() -> R>,
}

enum Stage<L> {
    Before(L),
    Waiting(Waiting),
    Done,
}

struct Waiting {
    in_flight: InFlight,
    wait: Wait,
    alarm: CallerAlarm,
    /// While a worker has the operation, the caller's runtime may look idle.
    _hold: Option<ClockHold>,
}

// Nothing in it is pinned: the operation's future lives elsewhere.
impl<R, L, M> Unpin for WaitingCall<R, L, M> {}

impl<R, L, M> WaitingCall<R, L, M> {
    pub(crate) fn new(launch: L, finish: M) -> Self {
        Self {
            stage: Stage::Before(launch),
            finish: Some(finish),
            answer: PhantomData,
        }
    }
}

impl<R, L, M> fmt::Debug for WaitingCall<R, L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingCall").finish_non_exhaustive()
    }
}

impl Waiting {
    fn new(in_flight: InFlight) -> Self {
        let is_on_worker = in_flight.place.is_some();
        Self {
            in_flight,
            wait: Wait::default(),
            alarm: CallerAlarm::default(),
            _hold: is_on_worker.then(ClockHold::here),
        }
    }

    fn poll_for<T: 'static>(&mut self, context: &mut Context<'_>) -> Poll<Result<T, TimeoutError>> {
        let mut answer = None::<T>;
        let polled = self.poll(context, &mut answer);
        polled.map(|ending| handed_over(ending, answer))
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        answer: &mut dyn Any,
    ) -> Poll<Result<(), TimeoutError>> {
        let Self {
            in_flight,
            wait,
            alarm,
            ..
        } = self;
        in_flight.call.token().set_caller_waker(context.waker());
        match in_flight.look(wait, answer) {
            Ok(ending) => Poll::Ready(ending),
            Err(until) => {
                alarm.set(in_flight.call.view().terms.clock(), until, context);
                Poll::Pending
            }
        }
    }
}

impl<R: 'static, L: Launch, M: Finish<R>> Future for WaitingCall<R, L, M> {
    type Output = M::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        let Self { stage, finish, .. } = &mut *self;
        let mut finish = |ending| match finish.take() {
            Some(finish) => Poll::Ready(finish.finish(ending)),
            None => unreachable!("a call finishes once"),
        };
        // Whatever panics from here on, the call is over.
        let mut waiting = match std::mem::replace(stage, Stage::Done) {
            Stage::Waiting(waiting) => waiting,
            Stage::Before(launch) => match launch.launch() {
                Ok(in_flight) => Waiting::new(in_flight),
                Err(error) => return finish(Err(error)),
            },
            Stage::Done => panic!("a finished call was polled again"),
        };
        let polled = if const { is_large::<R>() } {
            let polled = waiting.poll_for::<Box<R>>(context);
            polled.map_ok(|result| *result)
        } else {
            waiting.poll_for::<R>(context)
        };
        let Poll::Ready(ending) = polled else {
            *stage = Stage::Waiting(waiting);
            return Poll::Pending;
        };
        finish(ending)
    }
}

/// The ending of a call with the answer that it has put in its place.
pub(crate) fn handed_over<R>(
    ending: Result<(), TimeoutError>,
    answer: Option<R>,
) -> Result<R, TimeoutError> {
    ending?;
    match answer {
        Some(answer) => Ok(answer),
        None => unreachable!("an answer is handed over whole"),
    }
}
