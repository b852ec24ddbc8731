//! Waits for an operation that runs on a worker or as a task, by parking the thread or by polling.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::outcome::TimeoutError;
use crate::threads::background;
use crate::threads::parking::CurrentParker;
use crate::time::{Clock, ClockHold, Tick};
use crate::token::CallerAlarm;
use crate::{forked, unwind};

use super::cell::SpawnedCall;
use super::convert::IntoReturn;
use super::jobs::{self, Place};
use super::large::is_large;
use super::verdict::Phase;
use super::view::{Progress, Wait};

/// A call whose operation was given to a worker or a task. Dropping it before the outcome means
/// that the caller has left.
pub struct InFlight {
    call: SpawnedCall,
    /// Where a worker gets the operation; `None` for a task.
    place: Option<Place>,
    decided: bool,
}

impl InFlight {
    pub(super) fn new(call: SpawnedCall, place: Option<Place>) -> Self {
        Self {
            call,
            place,
            decided: false,
        }
    }

    /// Returns the outcome of the call and writes the value to `result`, which is an `Option` of
    /// it. `Err` is the instant until which there is no outcome unless the caller is woken.
    fn look(
        &mut self,
        wait: &mut Wait,
        result: &mut dyn Any,
    ) -> Result<Result<(), TimeoutError>, Tick> {
        let phase = loop {
            match self.call.view().progress(wait) {
                Progress::Wait(until) => return Err(until),
                Progress::Published => break Phase::Published,
                Progress::Over => break self.leave(),
                Progress::Withdraw if self.call.withdraw() => {
                    self.drop_operation();
                    break Phase::Queued;
                }
                // The operation has started in between, and may have grace.
                Progress::Withdraw => {}
            }
        };
        self.decided = true;
        Ok(match phase {
            Phase::Published => {
                self.collect(result);
                Ok(())
            }
            phase => {
                let no_worker = matches!(self.place, Some(Place::Queued(_)));
                Err(self.call.view().end_without_result(phase, no_worker))
            }
        })
    }

    fn leave(&mut self) -> Phase {
        let phase = self.call.leave();
        if phase == Phase::Queued {
            self.drop_operation();
        }
        phase
    }

    /// Drops a withdrawn operation on a background thread, because its destructor may take long. A
    /// worker or a runtime that already has the operation drops it anyway.
    fn drop_operation(&self) {
        if let Some(Place::Queued(ticket)) = &self.place {
            let job = jobs::withdraw(ticket);
            let call = self.call.clone();
            background::run(move || {
                call.op().clear();
                drop(job);
            });
        }
    }

    /// Ends the call with its result. Resumes a panic of the operation.
    fn collect(&mut self, result: &mut dyn Any) {
        let Some((panic, report)) = self.call.op().take_result(result) else {
            unreachable!("a result is stored before it is published");
        };
        self.call.view().end_with_result(report);
        if let Some(Place::Handed(handed)) = self.place.take() {
            jobs::remember(handed);
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Parks the thread until the outcome. Spins adaptively before parking.
    pub(crate) fn park(mut self, result: &mut dyn Any) -> Result<(), TimeoutError> {
        let mut wait = Wait::default();
        let mut parker = None;
        let mut may_spin = true;
        let mut is_registered = false;
        loop {
            let until = match self.look(&mut wait, result) {
                Ok(ending) => return ending,
                Err(until) => until,
            };
            if std::mem::take(&mut may_spin) && self.spin(until) {
                continue;
            }
            if parker.is_none() && forked::is_child() {
                return Err(self.leave_in_fork());
            }
            let parker = parker.get_or_insert_with(CurrentParker::get);
            // Register the waker, check again, then park: a wake-up in between is not lost.
            if std::mem::take(&mut is_registered) {
                let terms = self.call.view().terms;
                parker.park_on(terms.clock(), until, terms.order());
            } else {
                self.call.token().set_caller_waker(parker.waker());
                is_registered = true;
            }
        }
    }

    /// This process is a forked child: the worker that has the operation is in the parent.
    fn leave_in_fork(&mut self) -> TimeoutError {
        self.decided = true;
        let phase = self.leave();
        self.call.op().clear();
        self.call.view().end_without_result(phase, true)
    }

    fn spin(&self, until: Tick) -> bool {
        match &self.place {
            Some(Place::Handed(handed)) => {
                let terms = self.call.view().terms;
                terms.clock() == Clock::Real && handed.spin(&terms.policy().spin, until)
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
        let result = if phase == Phase::Published {
            self.call.op().take_result(&mut ())
        } else {
            None
        };
        let report = result.map(|(panic, report)| {
            unwind::drop_catching(panic);
            report
        });
        self.call.view().end_dropped(phase, report);
    }
}

/// Starts a call and gives its operation to a worker or a task.
pub trait Launch {
    #[doc(hidden)]
    fn launch(self) -> Result<InFlight, TimeoutError>;
}

/// A call that starts at the first poll and waits for its operation.
///
/// Cancel safe in this sense: a future that is dropped before its first poll has called nothing. A
/// future that is dropped later cancels the token of its operation, which is abandoned until it
/// ends.
#[must_use = "futures do nothing unless polled"]
pub struct WaitingCall<R, L, M> {
    stage: WaitStage<L>,
    convert: Option<M>,
    result: PhantomData<fn() -> R>,
}

enum WaitStage<L> {
    Before(L),
    Waiting(PolledWait),
    Done,
}

struct PolledWait {
    in_flight: InFlight,
    wait: Wait,
    alarm: CallerAlarm,
    /// Keeps Tokio's paused clock still while a worker runs the operation: the runtime of the
    /// caller may look idle meanwhile.
    _hold: Option<ClockHold>,
}

// Nothing in this struct is pinned: the future of the operation is elsewhere.
impl<R, L, M> Unpin for WaitingCall<R, L, M> {}

impl<R, L, M> WaitingCall<R, L, M> {
    pub(crate) fn new(launch: L, convert: M) -> Self {
        Self {
            stage: WaitStage::Before(launch),
            convert: Some(convert),
            result: PhantomData,
        }
    }
}

impl<R, L, M> fmt::Debug for WaitingCall<R, L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingCall").finish_non_exhaustive()
    }
}

impl PolledWait {
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
        let mut result = None::<T>;
        let polled = self.poll(context, &mut result);
        polled.map(|ending| into_result(ending, result))
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        result: &mut dyn Any,
    ) -> Poll<Result<(), TimeoutError>> {
        let Self {
            in_flight,
            wait,
            alarm,
            ..
        } = self;
        in_flight.call.token().set_caller_waker(context.waker());
        match in_flight.look(wait, result) {
            Ok(ending) => Poll::Ready(ending),
            Err(until) => {
                if !in_flight.call.token().wakes_caller_at(until) {
                    let terms = in_flight.call.view().terms;
                    alarm.set_in_order(terms.clock(), until, terms.order(), context);
                }
                Poll::Pending
            }
        }
    }
}

impl<R: 'static, L: Launch, M: IntoReturn<R>> Future for WaitingCall<R, L, M> {
    type Output = M::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<M::Output> {
        let Self { stage, convert, .. } = &mut *self;
        let mut convert = |ending| match convert.take() {
            Some(convert) => Poll::Ready(convert.into_return(ending)),
            None => unreachable!("a call finishes once"),
        };
        // If anything below panics, the call is finished.
        let mut waiting = match std::mem::replace(stage, WaitStage::Done) {
            WaitStage::Waiting(waiting) => waiting,
            WaitStage::Before(launch) => match launch.launch() {
                Ok(in_flight) => PolledWait::new(in_flight),
                Err(error) => return convert(Err(error)),
            },
            WaitStage::Done => panic!("a finished call was polled again"),
        };
        let polled = if const { is_large::<R>() } {
            let polled = waiting.poll_for::<Box<R>>(context);
            polled.map_ok(|result| *result)
        } else {
            waiting.poll_for::<R>(context)
        };
        let Poll::Ready(ending) = polled else {
            *stage = WaitStage::Waiting(waiting);
            return Poll::Pending;
        };
        convert(ending)
    }
}

/// The result of a call that has written its value to `result`.
pub(crate) fn into_result<R>(
    ending: Result<(), TimeoutError>,
    result: Option<R>,
) -> Result<R, TimeoutError> {
    ending?;
    match result {
        Some(result) => Ok(result),
        None => unreachable!("a call without an error has a value"),
    }
}
