//! The frames of a thread: the current call, from which nested calls inherit, and the calls around
//! it.
//!
//! The current frame is that of the call whose operation the thread runs, or `Outside`. The code
//! that runs, polls or drops an operation installs the frame of that operation on top of the
//! others. A guard removes it, also during a panic.
//!
//! - For a plain frame, a copy is installed and the original stays untouched. If the copy gets a
//!   token, it replaces the original.
//! - An inline async call drops its operation inside its frame, where no guard can be held. It
//!   calls `install` before that drop and `remove` after it.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};

use crate::outcome::Cause;
use crate::sync::const_thread_local;
use crate::terms::PolicyRef;
use crate::time::{Deadline, Tick};
use crate::token::CancelToken;

pub(crate) use super::plain_call::PlainCall;

/// The frame of one call. It is small, because it is installed for every poll.
pub(crate) enum Frame {
    /// Outside any call.
    Outside,
    /// A call whose token has not been created.
    Plain(PlainCall),
    /// A call with its token, or a context. The token has the terms.
    Token(CancelToken),
}

impl Frame {
    #[inline]
    fn is_outside(&self) -> bool {
        matches!(self, Self::Outside)
    }

    /// Whether this is a copy made by `PlainCall::copy`. Once its token is created, it is not a
    /// copy any more.
    #[inline]
    fn is_copy(&self) -> bool {
        matches!(self, Self::Plain(call) if call.is_static())
    }

    /// The caller has left: cancels the token.
    pub(crate) fn abandon(&mut self) {
        match self {
            Self::Outside => {}
            Self::Plain(call) => call.abandon(),
            Self::Token(CancelToken(token)) => token.cancel(Cause::Cancelled, None),
        }
    }

    /// The token of the call, created on first use. `None` outside any call. The frame is not
    /// installed, and the current frame is that of the enclosing call.
    pub(crate) fn token(&mut self) -> Option<&CancelToken> {
        if let Self::Plain(call) = self {
            let enclosing = if call.is_nested() { token() } else { None };
            *self = Self::Token(call.token(enclosing.as_ref()));
        }
        self.known_token()
    }

    /// The token of the call, if it was created.
    pub(crate) fn known_token(&self) -> Option<&CancelToken> {
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

/// How many frames around the current one need no allocation.
const NEAR: usize = 4;

/// The frames of a thread.
struct Frames {
    current: Frame,
    /// The frames around the current one, innermost last. Frames `Outside` are left out where
    /// another one covers them.
    near: [Frame; NEAR],
    far: Vec<Frame>,
    /// The number of frames in `near` and `far`.
    around: usize,
}

const_thread_local! {
    // Without a destructor, an access needs no check whether the value still exists. At the end of
    // a thread, the frame is `Outside` and `far` is empty, which need no destructor.
    static FRAMES: ManuallyDrop<RefCell<Frames>> = ManuallyDrop::new(RefCell::new(Frames::NONE));
}

impl Frames {
    const NONE: Self = Self {
        current: Frame::Outside,
        near: [const { Frame::Outside }; NEAR],
        far: Vec::new(),
        around: 0,
    };

    #[cold]
    fn cover(&mut self) {
        let frame = mem::replace(&mut self.current, Frame::Outside);
        match self.near.get_mut(self.around) {
            Some(place) => *place = frame,
            None => self.far.push(frame),
        }
        self.around += 1;
    }

    #[cold]
    fn uncover(&mut self) -> Frame {
        self.around -= 1;
        if let Some(place) = self.near.get_mut(self.around) {
            return mem::replace(place, Frame::Outside);
        }
        let frame = self.far.pop();
        if self.far.is_empty() {
            self.far = Vec::new();
        }
        frame.unwrap_or(Frame::Outside)
    }

    /// The frame with `around` frames around it.
    fn at(&mut self, around: usize) -> &mut Frame {
        if around == self.around {
            return &mut self.current;
        }
        match around.checked_sub(NEAR) {
            None => &mut self.near[around],
            Some(far) => &mut self.far[far],
        }
    }

    /// The token of the frame with `around` frames around it.
    fn token(&mut self, around: usize) -> Option<CancelToken> {
        if let Frame::Plain(call) = self.at(around) {
            let is_nested = call.is_nested();
            let enclosing = if is_nested {
                self.token(around - 1)
            } else {
                None
            };
            let frame = self.at(around);
            if let Frame::Plain(call) = frame {
                *frame = Frame::Token(call.token(enclosing.as_ref()));
            }
        }
        self.at(around).known_token().cloned()
    }

    fn current_token(&mut self) -> Option<CancelToken> {
        self.token(self.around)
    }
}

#[inline]
fn with_frames<T>(f: impl FnOnce(&mut Frames) -> T) -> T {
    FRAMES.with(|frames| f(&mut frames.borrow_mut()))
}

/// Whether this code runs outside any call.
#[inline]
pub(crate) fn is_outside() -> bool {
    with_frames(|frames| frames.current.is_outside())
}

/// The token of the current call. `None` outside any call.
pub(crate) fn token() -> Option<CancelToken> {
    with_frames(Frames::current_token)
}

/// Starts a call that ends at `bound` at the latest, and with the current call if it inherits.
/// Returns `None` if more than time can end it, or if it must not start.
#[inline(never)]
pub(crate) fn bounded_call(
    policy: &PolicyRef,
    limit: u64,
    bound: Tick,
    inherits: bool,
) -> Option<PlainCall> {
    with_frames(|frames| match &mut frames.current {
        Frame::Outside => PlainCall::until(policy, limit, bound),
        Frame::Plain(call) if inherits => call.nested(policy, limit, bound),
        // Without inheritance, the error of the bound would count as one of the enclosing call.
        Frame::Plain(_) | Frame::Token(_) => None,
    })
}

/// What a call made here inherits. Creates the token of the current call.
pub(crate) fn current() -> Option<Enclosing> {
    let token = token()?;
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
}

/// Whether the current call is not cancelled. `false` means unknown: check its token.
#[inline]
pub(crate) fn is_live() -> bool {
    with_frames(|frames| match &mut frames.current {
        Frame::Outside => true,
        Frame::Plain(call) => !call.is_stopped(),
        Frame::Token(CancelToken(token)) => token.is_live(),
    })
}

/// The deadline that a call made here inherits.
pub(crate) fn deadline() -> Deadline {
    token().map_or(Deadline::never(), |token| token.deadline())
}

/// Installs `frame` until the guard is dropped.
#[inline]
pub(crate) fn enter(frame: &mut Frame) -> Entered<'_> {
    let kind = with_frames(|frames| {
        // Moving a frame in and out at every poll delays the next poll. An unchanged copy can be
        // overwritten instead.
        let copy = match (&*frame, &frames.current) {
            (Frame::Plain(call), Frame::Outside) => call.copy(),
            _ => None,
        };
        match copy {
            Some(call) => {
                frames.current = Frame::Plain(call);
                Kind::Copy
            }
            None => frames.install(frame),
        }
    });
    Entered { frame, kind }
}

/// How a frame was installed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// As a copy, and no frame is around it.
    Copy,
    /// As a copy, around which another frame is.
    CoveringCopy,
    /// The frame itself, and no frame is around it.
    Moved,
    /// The frame itself, around which another frame is.
    CoveringMoved,
}

/// Removes the frame when dropped.
pub(crate) struct Entered<'a> {
    frame: &'a mut Frame,
    kind: Kind,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        with_frames(|frames| {
            if self.kind == Kind::Copy && frames.current.is_copy() {
                frames.current = Frame::Outside;
            } else {
                frames.remove(self.frame, self.kind);
            }
        });
    }
}

impl Frames {
    #[cold]
    fn install(&mut self, frame: &mut Frame) -> Kind {
        let is_covering = !self.current.is_outside();
        if is_covering {
            self.cover();
        }
        if let Frame::Plain(call) = frame {
            if let Some(copy) = call.copy() {
                self.current = Frame::Plain(copy);
                return Kind::CoveringCopy;
            }
        }
        mem::swap(&mut self.current, frame);
        if is_covering {
            Kind::CoveringMoved
        } else {
            Kind::Moved
        }
    }

    #[cold]
    fn remove(&mut self, frame: &mut Frame, kind: Kind) {
        let around = match kind {
            Kind::Copy | Kind::Moved => Frame::Outside,
            Kind::CoveringCopy | Kind::CoveringMoved => self.uncover(),
        };
        *frame = mem::replace(&mut self.current, around);
    }
}

/// Installs `frame`, where no guard can be held. `remove` with the same frame must follow.
pub(crate) fn install(frame: &mut Frame) {
    with_frames(|frames| {
        frames.cover();
        mem::swap(&mut frames.current, frame);
    });
}

/// Removes the frame that `install` has installed.
pub(crate) fn remove(frame: &mut Frame) {
    with_frames(|frames| frames.remove(frame, Kind::CoveringMoved));
}

/// Runs `f` outside any call.
pub(crate) fn outside<T>(f: impl FnOnce() -> T) -> T {
    if is_outside() {
        return f();
    }
    let mut outside = Frame::Outside;
    let _entered = enter(&mut outside);
    f()
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::super::plain_call::COARSE_FROM;
    use super::*;

    static POLICY: crate::terms::Policy = crate::terms::Policy::new("frame");

    fn plain(coarse: bool) -> Frame {
        let policy = PolicyRef::Static(&POLICY);
        Frame::Plain(PlainCall::new(policy, COARSE_FROM, coarse))
    }

    #[test]
    fn a_plain_frame_is_unchanged_after_its_operation_ran() {
        let mut frame = plain(false);
        {
            let _entered = enter(&mut frame);
            assert!(!is_outside());
            assert!(is_live());
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

    /// Making a coarse start precise in the copy alone let a cancelled call end in time.
    #[test]
    fn a_call_with_a_coarse_start_is_checked_without_changing_its_copy() {
        let mut frame = plain(true);
        {
            let _entered = enter(&mut frame);
            assert!(is_live());
            with_frames(|frames| {
                assert!(matches!(&frames.current, Frame::Plain(call) if call.has_coarse_start()));
            });
        }
        assert!(matches!(&frame, Frame::Plain(call) if call.has_coarse_start()));
    }

    /// The frames of so many calls inside each other do not fit into `NEAR`.
    const DEEP: usize = 3 * NEAR;

    fn nest(depth: usize, innermost: &mut dyn FnMut()) {
        let policy = PolicyRef::Static(&POLICY);
        let mut frame = match bounded_call(&policy, COARSE_FROM, Tick::NEVER, true) {
            Some(call) => Frame::Plain(call),
            None => plain(false),
        };
        let _entered = enter(&mut frame);
        match depth {
            1 => innermost(),
            _ => nest(depth - 1, innermost),
        }
    }

    #[test]
    fn a_token_created_in_a_nested_call_is_linked_below_the_tokens_of_all_calls_around() {
        let mut outermost = plain(false);
        let inner = {
            let _entered = enter(&mut outermost);
            let mut inner = None;
            nest(DEEP, &mut || inner = token());
            inner.unwrap()
        };
        assert!(!inner.is_cancelled());
        outermost.abandon();
        assert!(inner.is_cancelled());
        assert!(is_outside());
    }

    #[test]
    fn calls_inside_each_other_leave_the_frames_as_they_were() {
        let mut outermost = plain(false);
        {
            let _entered = enter(&mut outermost);
            nest(DEEP, &mut || {
                with_frames(|frames| assert_eq!(frames.around, DEEP));
                outside(|| assert!(is_outside()));
                assert!(!is_outside());
            });
            with_frames(|frames| assert!(frames.around == 0 && frames.far.capacity() == 0));
        }
        assert!(matches!(outermost, Frame::Plain(_)) && is_outside());
    }
}
