//! Operations where their caller is, and the verdict on them. Those that are polled are in `polled.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

use crate::deadline::Clock;
use crate::error::TimeoutError;
use crate::frame::{self, Frame};
use crate::terms::Terms;
use crate::token::CancelToken;
use crate::token::node::{NodeRef, Watch};
use crate::unwind::{self, Payload};

use super::TokenParam;
use super::ask::Ask;
use super::report::{Classify, Found};
use super::start::{CallStart, start};
use super::view::{CallView, Caller, State};

/// The frame of a call that has something to hear, if it starts.
#[cold]
pub(super) fn begin_linked(ask: Ask, clock: Clock) -> Result<Frame, TimeoutError> {
    let CallStart { terms, parents } = start(ask, clock.resolved())?;
    let node = NodeRef::new(terms, Watch::Clocked, &parents);
    Ok(Frame::Token(CancelToken(node)))
}

impl Frame {
    /// The call as its two view see it; `caller` is both.
    pub(super) fn view<T>(&mut self, caller: Caller, look: impl FnOnce(CallView<'_>) -> T) -> T {
        let state = State::started(caller);
        let late = Mutex::new(None);
        let (terms, token) = match self {
            Self::Outside => (&Terms::None, None),
            Self::Plain(call) => (&Terms::Plain(call.terms().clone()), None),
            Self::Token(CancelToken(token)) => (token.terms(), Some(&**token)),
        };
        look(CallView {
            terms,
            state: &state,
            late: &late,
            token,
        })
    }

    /// Runs a piece of the operation inside its call. `Err` is its panic.
    #[inline]
    pub(super) fn inside<T>(&mut self, piece: impl FnOnce() -> T) -> Result<T, Payload> {
        let _inside = frame::enter(self);
        catch_unwind(AssertUnwindSafe(piece))
    }

    /// As `inside`, compiled once and not for each piece. What it costs would show in each poll.
    fn panic_inside(&mut self, piece: &mut dyn FnMut()) -> Option<Payload> {
        let _inside = frame::enter(self);
        unwind::panic_of(piece)
    }

    /// Whether there is nothing to be done about what the operation has ended with.
    #[inline]
    pub(super) fn passes(&self) -> bool {
        matches!(self, Self::Plain(call) if call.passes())
    }

    /// Whether nobody has the token, and nobody hears of the ending.
    pub(super) fn is_unnoticed(&self) -> bool {
        matches!(self, Self::Plain(call) if !call.has_listeners())
    }

    /// The operation has ended where its caller is, with a value or by `panic`: the verdict. A panic goes on.
    #[cold]
    fn judge(
        &mut self,
        caller: Caller,
        value: &mut dyn Value,
        panic: Option<Payload>,
    ) -> Result<(), TimeoutError> {
        let panic = self.view(caller, |view| {
            let mut found = Found::nothing(view.terms);
            let panic = panic.or_else(|| unwind::panic_of(&mut || value.assess(&mut found)));
            let report = found.report(panic.as_ref());
            if view.stands(&report) && view.answer() {
                view.answered(report);
                return Ok(panic);
            }
            value.clear();
            unwind::drop_catching(panic);
            view.stop(report);
            Err(view.unanswered(view.leave(), false))
        })?;
        match panic {
            Some(panic) => {
                // It is not to be dropped by the panic, should that be one of asking what it means.
                value.clear();
                resume_unwind(panic)
            }
            None => Ok(()),
        }
    }

    /// The operation was dropped where its caller is, since the wait for it is over: the verdict.
    pub(super) fn give_up(&mut self) -> TimeoutError {
        self.view(Caller::Polling, |view| {
            view.unanswered(view.leave_dropped(), false)
        })
    }
}

/// Runs `op` on the calling thread.
pub(crate) fn sync_inline<R, A, F>(
    ask: Ask,
    classify: Classify<R>,
    op: F,
) -> Result<R, TimeoutError>
where
    A: TokenParam,
    F: FnOnce(A) -> R,
{
    let mut frame = match ask.plain(Clock::Real) {
        Ok(call) => Frame::Plain(call),
        Err(ask) => begin_linked(ask, Clock::Real)?,
    };
    let param = A::of(|| frame.token().cloned().unwrap_or_default());
    let mut op = Some((op, param));
    let mut value = None;
    let panic = frame.panic_inside(&mut || {
        if let Some((op, param)) = op.take() {
            value = Some(op(param));
        }
    });
    match value {
        Some(value) if frame.passes() => Ok(value),
        value => judged(Caller::Running, value, panic, classify, &mut frame),
    }
}

/// What an operation has given where its caller is, whatever its type.
trait Value {
    /// Notes that the operation has ended with it, and what it means.
    fn assess(&self, found: &mut Found<'_>);

    /// Drops the value.
    fn clear(&mut self);
}

struct Given<R>(Option<R>, Classify<R>);

impl<R> Value for Given<R> {
    fn assess(&self, found: &mut Found<'_>) {
        if let Self(Some(value), classify) = self {
            found.ended();
            found.means(frame::outside(|| classify(value)));
        }
    }

    fn clear(&mut self) {
        unwind::drop_catching(self.0.take());
    }
}

/// The value, if the verdict is that it counts.
#[cold]
pub(super) fn judged<R>(
    caller: Caller,
    value: Option<R>,
    panic: Option<Payload>,
    classify: Classify<R>,
    frame: &mut Frame,
) -> Result<R, TimeoutError> {
    let mut given = Given(value, classify);
    frame.judge(caller, &mut given, panic)?;
    match given.0 {
        Some(value) => Ok(value),
        None => unreachable!("an operation without a value has panicked"),
    }
}
