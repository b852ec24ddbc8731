//! Runs sync operations on the caller's thread. Decides the outcome of these, and of the futures
//! that `polled.rs` polls.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

use crate::context::frame::{self, Frame};
use crate::outcome::TimeoutError;
use crate::time::{Clock, Tick};
use crate::token::CancelToken;
use crate::unwind::{self, Payload};

use super::TokenParam;
use super::options::CallOptions;
use super::report::{Classify, ReportBuilder, is_value};
use super::start::start_updated;
use super::view::{CallState, CallView, Caller};

/// The frame of a call that has a token from its start, if the call starts. Its options were
/// refused by `plain`, which has updated the limit.
#[cold]
pub(super) fn start_with_token(options: CallOptions, clock: Clock) -> Result<Frame, TimeoutError> {
    let started = start_updated(options, clock.resolved())?;
    Ok(Frame::Token(started.token()))
}

impl Frame {
    /// Runs `f` with a view of the call. `caller` is both of its sides.
    pub(super) fn view<T>(&mut self, caller: Caller, f: impl FnOnce(CallView<'_>) -> T) -> T {
        let state = CallState::started(caller);
        let late = Mutex::new(None);
        let plain;
        let (terms, token) = match self {
            Self::Outside => (None, None),
            Self::Plain(call) => {
                plain = call.terms();
                (Some(&plain), None)
            }
            Self::Token(CancelToken(token)) => (token.terms(), Some(&**token)),
        };
        let Some(terms) = terms else {
            unreachable!("the frame is that of a call");
        };
        f(CallView {
            terms,
            state: &state,
            late: &late,
            token,
        })
    }

    /// Runs a part of the operation inside its call. `Err` is its panic.
    #[inline]
    pub(super) fn inside<T>(&mut self, part: impl FnOnce() -> T) -> Result<T, Payload> {
        let _inside = frame::enter(self);
        catch_unwind(AssertUnwindSafe(part))
    }

    /// As `inside`, but compiled once. `inside` is compiled for each closure, because an indirect
    /// call would slow down every poll.
    fn panic_inside(&mut self, part: &mut dyn FnMut()) -> Option<Payload> {
        let _inside = frame::enter(self);
        unwind::panic_of(part)
    }

    /// Whether all that the operation returns now counts, and no event is due.
    #[inline]
    fn needs_no_decision(&mut self) -> bool {
        match self {
            Self::Plain(call) => !call.has_listeners() && !call.has_expired(),
            Self::Outside | Self::Token(_) => false,
        }
    }

    /// Whether `value` is the outcome because a poll returned it, and no event is due.
    #[inline]
    pub(super) fn has_polled<R>(&self, value: &R, classify: Classify<R>) -> bool {
        self.is_unobserved() && is_value(value, classify)
    }

    /// The current time, if it matters when an operation returned its value: because the value must
    /// be in time, or because of listeners.
    fn end_time(&self, caller: Caller) -> Option<Tick> {
        let (clock, has_listeners) = match self {
            Self::Outside => return None,
            Self::Plain(call) => (Clock::Real, call.has_listeners()),
            Self::Token(CancelToken(token)) => {
                let terms = token.terms()?;
                (terms.clock(), terms.policy().has_listeners())
            }
        };
        (has_listeners || caller != Caller::Polling).then(|| clock.now())
    }

    /// Ends a call whose operation returned a value at `at`, if the value counts. Emits the event.
    ///
    /// A short form of `decide_in_call` for most calls.
    fn end_with_value(&mut self, caller: Caller, at: Option<Tick>) -> bool {
        let is_in_time = |end: Tick| caller == Caller::Polling || at.is_some_and(|at| at <= end);
        match self {
            Self::Outside => false,
            Self::Plain(call) => {
                let counts = is_in_time(call.deadline());
                if let Some(at) = at.filter(|_| counts && call.has_listeners()) {
                    call.terms().emit_success(at);
                }
                counts
            }
            Self::Token(CancelToken(token)) => {
                let terms = token.terms().filter(|terms| !terms.clock().is_for_tests());
                let Some(terms) = terms else {
                    return false;
                };
                let counts = is_in_time(terms.end());
                if counts {
                    token.disarm_if_shared();
                    if let Some(at) = at {
                        terms.emit_success(at);
                    }
                }
                counts
            }
        }
    }

    /// Whether the call has neither a token nor listeners.
    #[inline]
    pub(super) fn is_unobserved(&self) -> bool {
        matches!(self, Self::Plain(call) if !call.has_listeners())
    }

    /// The operation has ended in place, with `value` or by `panic`. Decides the outcome. Resumes a
    /// panic that counts.
    #[cold]
    fn decide_in_call(
        &mut self,
        caller: Caller,
        value: &mut dyn Value,
        panic: Option<Payload>,
    ) -> Result<(), TimeoutError> {
        let panic = self.view(caller, |view| {
            let mut builder = ReportBuilder::new(view.terms);
            let panic = panic.or_else(|| unwind::panic_of(&mut || value.assess(&mut builder)));
            let report = builder.build(panic.as_ref());
            if view.counts(&report) && view.publish() {
                view.end_with_result(report);
                return Ok(panic);
            }
            value.clear();
            unwind::drop_catching(panic);
            view.stop(report);
            Err(view.end_without_result(view.leave(), false))
        })?;
        match panic {
            Some(panic) => {
                // Dropped here: if classifying the value panicked, its destructor must not run
                // while that panic unwinds.
                value.clear();
                resume_unwind(panic)
            }
            None => Ok(()),
        }
    }

    /// The operation was dropped in place because the wait is over. Decides the outcome.
    pub(super) fn give_up(&mut self) -> TimeoutError {
        let is_unobserved = self.is_unobserved();
        self.view(Caller::Polling, |view| {
            if is_unobserved {
                // Only time can have ended the call, and no event is due.
                let terms = view.terms;
                return terms.error(terms.cause(), terms.elapsed(), true, None);
            }
            view.end_without_result(view.leave_dropped(), false)
        })
    }
}

/// Runs `op` on the calling thread.
pub(crate) fn sync_inline<R, A, F>(
    mut options: CallOptions,
    classify: Classify<R>,
    op: F,
) -> Result<R, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R,
{
    let clock = Clock::of_thread();
    let mut frame = match options.plain(clock) {
        Some(call) => Frame::Plain(call),
        None => start_with_token(options, clock)?,
    };
    let param = A::create(|| frame.token().cloned().unwrap_or_default());
    let mut op = Some((op, param));
    let mut value = None;
    let panic = frame.panic_inside(&mut || {
        if let Some((op, param)) = op.take() {
            value = Some(op(param));
        }
    });
    match value {
        Some(value) if frame.needs_no_decision() => Ok(value),
        value => decide(Caller::Running, value, panic, classify, &mut frame),
    }
}

/// The value of an operation that ran in place, of any type.
trait Value {
    /// Records the end of the operation and classifies the value.
    fn assess(&self, builder: &mut ReportBuilder<'_>);

    /// Drops the value.
    fn clear(&mut self);
}

struct InlineValue<R>(Option<R>, Classify<R>);

impl<R> Value for InlineValue<R> {
    fn assess(&self, builder: &mut ReportBuilder<'_>) {
        if let Self(Some(value), classify) = self {
            builder.record_end();
            builder.record_returned(frame::outside(|| classify(value)));
        }
    }

    fn clear(&mut self) {
        unwind::drop_catching(self.0.take());
    }
}

/// Returns the value if it counts.
#[cold]
pub(super) fn decide<R>(
    caller: Caller,
    value: Option<R>,
    panic: Option<Payload>,
    classify: Classify<R>,
    frame: &mut Frame,
) -> Result<R, TimeoutError> {
    let value = match value {
        // An error of a poll, which counts before the deadline.
        Some(value) if frame.needs_no_decision() => return Ok(value),
        Some(value) => {
            // The operation has ended now; classifying its value may run slow code of the user.
            let at = frame.end_time(caller);
            if is_value(&value, classify) && frame.end_with_value(caller, at) {
                return Ok(value);
            }
            Some(value)
        }
        None => None,
    };
    let mut value = InlineValue(value, classify);
    frame.decide_in_call(caller, &mut value, panic)?;
    match value.0 {
        Some(value) => Ok(value),
        None => unreachable!("an operation without a value has panicked"),
    }
}
