//! What the current call hands to the calls made inside it.
//!
//! A thread has one frame at a time: that of the call whose operation it runs, or the one outside any call. Whoever runs an
//! operation, or polls or drops a piece of one, swaps the operation's frame in and, by a guard, out again, also when a panic passes. Of a plain frame a copy is put
//! in place, and the frame itself does not change meanwhile; a copy that has become a token's takes its place. Only an inline async call pushes its frame, and
//! pops it when it is dropped itself: what is to happen inside the frame, the drop of the operation, is between two drops.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};

use crate::deadline::{Clock, Deadline};
use crate::error::Cause;
use crate::policy::PolicyRef;
use crate::sync::const_thread_local;
use crate::terms::{PlainTerms, Terms};
use crate::tick::{self, Tick};
use crate::token::CancelToken;
use crate::token::node::{NodeRef, Watch};

/// The frame of one call. It is small, since it is put in place at each poll.
pub(crate) enum Frame {
    /// Outside any call.
    Outside,
    /// A call whose token nobody has asked for.
    Plain(Call),
    /// A call with its token, or a context; its terms are the token's.
    Token(CancelToken),
}

/// A plain call where its caller is.
pub(crate) struct Call {
    terms: PlainTerms,
    /// The start was only glanced at.
    is_rough: bool,
    /// The caller has gone: a token that is asked for only now has fired.
    gone: bool,
}

/// With limits from here on, the start of an async call is only glanced at.
const LONG: u64 = 1_000_000_000;

impl Call {
    /// A call that starts now.
    #[inline]
    pub(crate) fn new(policy: PolicyRef, limit: u64, glance: bool) -> Self {
        let mut is_rough = false;
        let terms = PlainTerms::new(policy, limit, |policy| {
            // What listeners are told is precise.
            is_rough = glance && limit >= LONG && !policy.has_listeners();
            if is_rough {
                Tick::now_coarse()
            } else {
                Tick::now()
            }
        });
        Self {
            terms,
            is_rough,
            gone: false,
        }
    }

    /// Whether whatever the operation ends with now goes to its caller as it is, and nothing else is to be done: it is in time at a
    /// glance, and nobody hears of the verdict.
    #[inline]
    pub(crate) fn passes(&self) -> bool {
        self.terms.deadline().is_clearly_ahead() && !self.has_listeners()
    }

    #[inline]
    pub(crate) fn has_listeners(&self) -> bool {
        self.terms.policy.has_listeners()
    }

    /// Its terms, for which the start has to be known. One that was glanced at lies before now, and not further ahead than a glance
    /// may be behind. The earlier of the two is taken for it: so the deadline is never early, and late by no more than the
    /// operation's first poll has taken.
    pub(crate) fn terms(&mut self) -> &PlainTerms {
        if self.is_rough {
            self.resolve_start(Tick::now());
        }
        &self.terms
    }

    fn resolve_start(&mut self, now: Tick) {
        self.is_rough = false;
        let latest = self.terms.start.plus_nanos(tick::BEHIND);
        self.terms.start = now.min(latest);
    }

    /// Whether the deadline has come.
    pub(crate) fn is_over(&mut self) -> bool {
        if self.is_rough {
            let now = Tick::now();
            self.resolve_start(now);
            return now >= self.terms.deadline();
        }
        Clock::Real.has_reached(self.terms.deadline())
    }

    /// Whether its token, which nobody has asked for, would have fired.
    fn is_stopped(&mut self) -> bool {
        self.gone || self.terms.policy.cancel && self.is_over()
    }

    /// The same once more, if that costs nothing.
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

    /// The call's token.
    #[cold]
    fn token(&mut self) -> CancelToken {
        let terms = Terms::Plain(self.terms().clone());
        let node = NodeRef::new(terms, Watch::Clocked, &[]);
        if self.gone {
            node.cancel(Cause::Cancelled, None);
        }
        CancelToken(node)
    }
}

impl Frame {
    /// Whether this is what `Call::copy` makes. If a token is asked for, it is one no more.
    #[inline]
    fn is_copy(&self) -> bool {
        matches!(self, Self::Plain(call) if matches!(call.terms.policy, PolicyRef::Static(_)))
    }

    /// The caller has gone: the token fires.
    pub(crate) fn abandon(&mut self) {
        match self {
            Self::Outside => {}
            Self::Plain(call) => call.gone = true,
            Self::Token(CancelToken(token)) => token.cancel(Cause::Cancelled, None),
        }
    }

    /// The call's token, made now if nobody has asked before; `None` outside any call.
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

/// What a call takes over from the one around it.
pub(crate) struct Outer {
    /// The deadline of a context that no call has made.
    pub(crate) bare: Deadline,
    /// When the caller is gone at the latest; `None` where calls inside are bound by what they inherit alone.
    pub(crate) end: Option<Deadline>,
    pub(crate) token: CancelToken,
}

const_thread_local! {
    // Without a destructor it needs no look whether it is there still. When a thread ends it is outside, and that needs none.
    static FRAME: ManuallyDrop<RefCell<Frame>> = ManuallyDrop::new(RefCell::new(Frame::Outside));
}

const_thread_local! {
    // The frames that were in place before `push`. Without a destructor too; it frees its memory when it becomes empty.
    static PUSHED: ManuallyDrop<RefCell<Vec<Frame>>> = ManuallyDrop::new(RefCell::new(Vec::new()));
}

#[inline]
fn with_frame<T>(f: impl FnOnce(&mut Frame) -> T) -> T {
    FRAME.with(|frame| f(&mut frame.borrow_mut()))
}

/// Whether calls made here have nothing to take over.
#[inline]
pub(crate) fn is_outside() -> bool {
    with_frame(|frame| matches!(frame, Frame::Outside))
}

/// The call that this code runs in, with its token.
pub(crate) fn current() -> Option<Outer> {
    with_frame(|frame| {
        let token = frame.token()?.clone();
        let terms = token.0.terms();
        let bare = if terms.is_call() {
            Deadline::never()
        } else {
            Deadline::on(terms.clock(), terms.cancels_at())
        };
        // PropagatedToWorker elsewhere by its context, a call is known by its token.
        let end = token.0.caller_end();
        Some(Outer { bare, end, token })
    })
}

/// Whether the current call has been told to stop, or the token to ask where that cannot be told from here.
#[inline]
pub(crate) fn is_stopped() -> Result<bool, CancelToken> {
    with_frame(|frame| match frame {
        Frame::Outside => Ok(false),
        // While its start is rough this may be a copy, which must not settle for itself when the deadline comes.
        Frame::Plain(call) if !call.is_rough => Ok(call.is_stopped()),
        Frame::Token(token) if token.0.is_live() => Ok(false),
        frame => frame.token().cloned().map_or(Ok(false), Err),
    })
}

/// The deadline that a call made here inherits.
pub(crate) fn deadline() -> Deadline {
    with_frame(|frame| frame.token().map(CancelToken::deadline)).unwrap_or(Deadline::never())
}

/// The current frame is the one in `frame` for as long as the guard lives.
#[inline]
pub(crate) fn enter(frame: &mut Frame) -> Entered<'_> {
    let is_copy = with_frame(|current| {
        // What is moved out and back at each poll has to be waited for at the next one; a copy that has not changed is left behind.
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

/// Puts the frame before back in place.
pub(crate) struct Entered<'a> {
    frame: &'a mut Frame,
    /// What is in place is a copy of `frame`, and what was there before is `Outside`.
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

/// Puts `frame` in place until it is popped, for where no guard can be held.
pub(crate) fn push(frame: &mut Frame) {
    let frame = mem::replace(frame, Frame::Outside);
    let before = with_frame(|current| mem::replace(current, frame));
    PUSHED.with(|pushed| pushed.borrow_mut().push(before));
}

/// Takes the frame that was pushed last out of its place.
pub(crate) fn pop(frame: &mut Frame) {
    let before = PUSHED.with(|pushed| {
        let mut pushed = pushed.borrow_mut();
        let before = pushed.pop();
        if pushed.is_empty() {
            *pushed = Vec::new();
        }
        before
    });
    let before = before.unwrap_or(Frame::Outside);
    *frame = with_frame(|current| mem::replace(current, before));
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

    static POLICY: crate::policy::Policy = crate::policy::Policy::new("frame");

    fn plain(glance: bool) -> Frame {
        Frame::Plain(Call::new(PolicyRef::Static(&POLICY), LONG, glance))
    }

    #[test]
    fn a_plain_frame_comes_back_as_it_was() {
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
    fn a_token_that_is_asked_for_comes_back_with_its_frame() {
        let mut frame = plain(false);
        let token = {
            let _entered = enter(&mut frame);
            current().unwrap().token
        };
        assert!(is_outside());
        assert_eq!(frame.token().unwrap().0.address(), token.0.address());
    }

    /// Guards against a start that is settled in a copy: a call that was told to stop would then have ended in time.
    #[test]
    fn whoever_asks_a_call_whose_start_is_rough_asks_its_token() {
        let mut frame = plain(true);
        let token = {
            let _entered = enter(&mut frame);
            is_stopped().unwrap_err()
        };
        assert_eq!(frame.token().unwrap().0.address(), token.0.address());
    }
}
