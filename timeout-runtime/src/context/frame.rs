//! The frame of a thread: the current call, from which nested calls inherit.
//!
//! A thread has one frame at a time: the frame of the call whose operation it runs, or `Outside`.
//! The code that runs, polls or drops an operation installs the frame of that operation. A guard
//! restores the frame before it, also during a panic.
//!
//! - For a plain frame, a copy is installed and the original stays untouched. If the copy gets a
//!   token, it replaces the original.
//! - An inline async call drops its operation inside its frame, where no guard can be held. It
//!   calls `exchange` before that drop and after it.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};

use crate::outcome::Cause;
use crate::sync::const_thread_local;
use crate::terms::{PlainTerms, PolicyRef, Terms};
use crate::time::{Clock, Deadline, Tick, tick};
use crate::token::node::{NodeRef, Watch};
use crate::token::{CancelToken, Owner};

/// The frame of one call. It is small, because it is installed for every poll.
pub(crate) enum Frame {
    /// Outside any call.
    Outside,
    /// A call whose token has not been created.
    Plain(PlainCall),
    /// A call with its token, or a context. The token has the terms.
    Token(CancelToken),
}

/// A call that runs in place and that only its limit can end.
pub(crate) struct PlainCall {
    terms: PlainTerms,
    /// Whether the start is a coarse clock reading.
    is_start_coarse: bool,
    /// The caller has left. A token that is created from now on is cancelled.
    caller_left: bool,
}

/// From this limit on (in nanoseconds), async calls read their start from the coarse clock.
const COARSE_FROM: u64 = 1_000_000_000;

impl PlainCall {
    /// Starts a call. `may_be_coarse` allows a coarse clock reading for its start.
    #[inline]
    pub(crate) fn new(policy: PolicyRef, limit: u64, may_be_coarse: bool) -> Self {
        let mut is_start_coarse = false;
        let terms = PlainTerms::new(policy, limit, |policy| {
            // Events have precise times.
            is_start_coarse = may_be_coarse && limit >= COARSE_FROM && !policy.has_listeners();
            if is_start_coarse {
                Tick::now_coarse()
            } else {
                Tick::now()
            }
        });
        Self {
            terms,
            is_start_coarse,
            caller_left: false,
        }
    }

    /// Whether a value that the operation returns now goes to the caller without an event: a coarse
    /// clock reading shows that it is in time, and there are no listeners.
    #[inline]
    pub(crate) fn needs_no_decision(&self) -> bool {
        self.terms.deadline().is_clearly_ahead() && !self.has_listeners()
    }

    #[inline]
    pub(crate) fn has_listeners(&self) -> bool {
        self.terms.policy.has_listeners()
    }

    /// The terms of the call, with a precise start.
    ///
    /// The true start is at most `tick::BEHIND` after the coarse reading, and not after now. The
    /// earlier of these two instants becomes the start. So the deadline is never early, and late by
    /// at most the duration of the first poll.
    pub(crate) fn terms(&mut self) -> &PlainTerms {
        if self.is_start_coarse {
            self.resolve_start(Tick::now());
        }
        &self.terms
    }

    fn resolve_start(&mut self, now: Tick) {
        self.is_start_coarse = false;
        let latest = self.terms.start.plus_nanos(tick::BEHIND);
        self.terms.start = now.min(latest);
    }

    /// Whether the deadline has passed.
    pub(crate) fn has_expired(&mut self) -> bool {
        if self.is_start_coarse {
            let now = Tick::now();
            self.resolve_start(now);
            return now >= self.terms.deadline();
        }
        Clock::Real.has_reached(self.terms.deadline())
    }

    /// Whether the token of the call would be cancelled if it existed.
    fn is_stopped(&mut self) -> bool {
        self.caller_left || self.terms.policy.cancel && self.has_expired()
    }

    /// A copy of the call, if copying needs no reference count.
    #[inline]
    fn copy(&self) -> Option<Self> {
        let PlainTerms { policy, id, .. } = &self.terms;
        match policy {
            PolicyRef::Static(policy) => Some(Self {
                terms: PlainTerms {
                    policy: PolicyRef::Static(policy),
                    id: *id,
                    ..self.terms
                },
                ..*self
            }),
            PolicyRef::Shared(_) => None,
        }
    }

    /// Creates the token of the call.
    #[cold]
    fn token(&mut self) -> CancelToken {
        let terms = Terms::Plain(self.terms().clone());
        let node = NodeRef::new(Owner::Call(terms), Watch::Clocked, &[]);
        if self.caller_left {
            node.cancel(Cause::Cancelled, None);
        }
        CancelToken(node)
    }
}

impl Frame {
    /// Whether this is a copy made by `PlainCall::copy`. Once its token is created, it is not a
    /// copy any more.
    #[inline]
    fn is_copy(&self) -> bool {
        matches!(self, Self::Plain(call) if matches!(call.terms.policy, PolicyRef::Static(_)))
    }

    /// The caller has left: cancels the token.
    pub(crate) fn abandon(&mut self) {
        match self {
            Self::Outside => {}
            Self::Plain(call) => call.caller_left = true,
            Self::Token(CancelToken(token)) => token.cancel(Cause::Cancelled, None),
        }
    }

    /// The token of the call, created on first use. `None` outside any call.
    pub(crate) fn token(&mut self) -> Option<&CancelToken> {
        if let Self::Plain(call) = self {
            *self = Self::Token(call.token());
        }
        match self {
            Self::Token(token) => Some(token),
            Self::Outside | Self::Plain(_) => None,
        }
    }
}

/// What a nested call inherits.
pub(crate) struct Enclosing {
    /// The deadline of a `CallContext`; `never` for a call.
    pub(crate) context_deadline: Deadline,
    /// Latest time at which the enclosing caller stops waiting. `None`: the inherited deadline
    /// applies.
    pub(crate) end: Option<Deadline>,
    pub(crate) token: CancelToken,
}

const_thread_local! {
    // Without a destructor, an access needs no check whether the value still exists. At the end of
    // a thread, the frame is `Outside`, which needs no destructor.
    static FRAME: ManuallyDrop<RefCell<Frame>> = ManuallyDrop::new(RefCell::new(Frame::Outside));
}

#[inline]
fn with_frame<T>(f: impl FnOnce(&mut Frame) -> T) -> T {
    FRAME.with(|frame| f(&mut frame.borrow_mut()))
}

/// Whether this code runs outside any call.
#[inline]
pub(crate) fn is_outside() -> bool {
    with_frame(|frame| matches!(frame, Frame::Outside))
}

/// The token of the current call. `None` outside any call.
pub(crate) fn token() -> Option<CancelToken> {
    with_frame(|frame| frame.token().cloned())
}

/// What a call made here inherits. Creates the token of the current call.
pub(crate) fn current() -> Option<Enclosing> {
    with_frame(|frame| {
        let token = frame.token()?.clone();
        let context_deadline = if token.0.terms().is_some() {
            Deadline::never()
        } else {
            token.0.expiry().deadline()
        };
        // A context that was moved here has only the token of its call, so the token has this time.
        let end = token.0.caller_end();
        Some(Enclosing {
            context_deadline,
            end,
            token,
        })
    })
}

/// Whether the current call is cancelled. `Err` is the token to check, if the frame alone cannot
/// answer.
#[inline]
pub(crate) fn is_stopped() -> Result<bool, CancelToken> {
    with_frame(|frame| match frame {
        Frame::Outside => Ok(false),
        // While its start is coarse, this may be a copy, whose start must not be resolved apart
        // from the original.
        Frame::Plain(call) if !call.is_start_coarse => Ok(call.is_stopped()),
        Frame::Token(token) if token.0.is_live() => Ok(false),
        frame => frame.token().cloned().map_or(Ok(false), Err),
    })
}

/// The deadline that a call made here inherits.
pub(crate) fn deadline() -> Deadline {
    with_frame(|frame| frame.token().map(CancelToken::deadline)).unwrap_or(Deadline::never())
}

/// Installs `frame` until the guard is dropped.
#[inline]
pub(crate) fn enter(frame: &mut Frame) -> Entered<'_> {
    let is_copy = with_frame(|current| {
        // Moving a frame in and out at every poll delays the next poll. An unchanged copy can be
        // overwritten instead.
        let copy = match (&*frame, &*current) {
            (Frame::Plain(call), Frame::Outside) => call.copy(),
            _ => None,
        };
        let is_copy = copy.is_some();
        match copy {
            Some(call) => *current = Frame::Plain(call),
            None => mem::swap(current, frame),
        }
        is_copy
    });
    Entered { frame, is_copy }
}

/// Restores the frame before when dropped.
pub(crate) struct Entered<'a> {
    frame: &'a mut Frame,
    /// The installed frame is a copy of `frame`, and the frame before is `Outside`.
    is_copy: bool,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        with_frame(|current| {
            if self.is_copy && current.is_copy() {
                *current = Frame::Outside;
            } else {
                self.swap_out(current);
            }
        });
    }
}

impl Entered<'_> {
    fn swap_out(&mut self, current: &mut Frame) {
        mem::swap(current, self.frame);
        if self.is_copy {
            *current = Frame::Outside;
        }
    }
}

/// Exchanges `frame` with the frame of this thread. Called twice, where no guard can be held: the
/// second call restores both.
pub(crate) fn exchange(frame: &mut Frame) {
    with_frame(|current| mem::swap(current, frame));
}

/// Runs `f` outside any call.
pub(crate) fn outside<T>(f: impl FnOnce() -> T) -> T {
    let mut outside = Frame::Outside;
    let _entered = enter(&mut outside);
    f()
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;

    static POLICY: crate::terms::Policy = crate::terms::Policy::new("frame");

    fn plain(coarse: bool) -> Frame {
        Frame::Plain(PlainCall::new(
            PolicyRef::Static(&POLICY),
            COARSE_FROM,
            coarse,
        ))
    }

    #[test]
    fn a_plain_frame_is_unchanged_after_its_operation_ran() {
        let mut frame = plain(false);
        {
            let _entered = enter(&mut frame);
            assert!(!is_outside());
            assert!(is_stopped().is_ok_and(|stopped| !stopped));
        }
        assert!(is_outside());
        assert!(matches!(frame, Frame::Plain(_)));
    }

    #[test]
    fn a_token_created_inside_the_frame_is_kept_by_the_frame() {
        let mut frame = plain(false);
        let token = {
            let _entered = enter(&mut frame);
            current().unwrap().token
        };
        assert!(is_outside());
        assert_eq!(frame.token().unwrap().0.address(), token.0.address());
    }

    /// Resolving a coarse start in a copy let a cancelled call end in time.
    #[test]
    fn a_call_with_a_coarse_start_is_checked_by_its_token() {
        let mut frame = plain(true);
        let token = {
            let _entered = enter(&mut frame);
            is_stopped().unwrap_err()
        };
        assert_eq!(frame.token().unwrap().0.address(), token.0.address());
    }
}
