//! What the current call hands to the calls made inside it.
//!
//! A thread has one frame at a time: that of the call whose operation it runs, or the one outside any call. Whoever runs an
//! operation, or polls or drops a piece of one, swaps the operation's frame in and, by a guard, out again, also when a panic passes. Only an inline async call pushes its frame, and
//! pops it when it is dropped itself: what is to happen inside the frame, the drop of the operation, is between two drops.

use std::cell::RefCell;
use std::fmt;

use crate::deadline::Deadline;
use crate::error::Cause;
use crate::terms::Terms;
use crate::token::CancelToken;
use crate::token::node::{Node, Watch};

/// The frame of one call.
pub(crate) struct Frame {
    pub(crate) terms: Terms,
    /// The call's token, once somebody has asked for it.
    pub(crate) token: Option<CancelToken>,
    /// The caller has gone: a token that is asked for only now has fired.
    gone: bool,
}

impl Frame {
    /// Outside any call.
    pub(crate) fn outside() -> Self {
        Self::new(Terms::none(), None)
    }

    pub(crate) fn new(terms: Terms, token: Option<CancelToken>) -> Self {
        Self {
            terms,
            token,
            gone: false,
        }
    }

    /// The caller has gone: the token fires.
    pub(crate) fn abandon(&mut self) {
        self.gone = true;
        if let Some(CancelToken(token)) = &self.token {
            token.fire(Cause::Cancelled, None);
        }
    }

    /// Whether calls made here have nothing to take over.
    fn is_outside(&self) -> bool {
        !self.terms.is_call && self.terms.signal.is_never() && self.token.is_none()
    }

    /// The call's token; made now if nobody has asked before.
    pub(crate) fn token(&mut self) -> &CancelToken {
        let Self { terms, token, gone } = self;
        token.get_or_insert_with(|| {
            let node = Node::new(terms.clone(), Watch::Clocked, None, &[], ());
            if *gone {
                node.fire(Cause::Cancelled, None);
            }
            CancelToken(node)
        })
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("name", &self.terms.name())
            .finish_non_exhaustive()
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

struct Ambient {
    frame: Frame,
    /// Those that were in place before `push`.
    pushed: Vec<Frame>,
    /// The listeners that this code runs inside of.
    muted: Vec<u64>,
}

thread_local! {
    static AMBIENT: RefCell<Ambient> = RefCell::new(Ambient {
        frame: Frame::outside(),
        pushed: Vec::new(),
        muted: Vec::new(),
    });
}

/// `None` while the thread is being torn down: there is no call around destructors of its thread-locals.
fn with<T>(f: impl FnOnce(&mut Ambient) -> T) -> Option<T> {
    AMBIENT
        .try_with(|ambient| f(&mut ambient.borrow_mut()))
        .ok()
}

/// The call that this code runs in, with its token.
pub(crate) fn current() -> Option<Outer> {
    with(|ambient| {
        let frame = &mut ambient.frame;
        if frame.is_outside() {
            return None;
        }
        let token = frame.token().clone();
        let terms = &frame.terms;
        let bare = if terms.is_call {
            Deadline::never()
        } else {
            Deadline::on(terms.clock, terms.signal)
        };
        let end = if terms.is_call {
            terms.caller_end()
        } else {
            // Carried elsewhere by its context, a call is known by its token.
            token.0.caller_end()
        };
        Some(Outer { bare, end, token })
    })
    .flatten()
}

/// The deadline that a call made here inherits.
pub(crate) fn deadline() -> Deadline {
    with(|ambient| {
        let Frame { terms, token, .. } = &ambient.frame;
        match token {
            Some(token) => token.deadline(),
            None => Deadline::on(terms.clock.settled(), terms.signal),
        }
    })
    .unwrap_or(Deadline::never())
}

/// The current frame is the one in `frame` for as long as the guard lives.
pub(crate) fn enter(frame: &mut Frame) -> Entered<'_> {
    swap(frame);
    Entered { frame }
}

fn swap(frame: &mut Frame) {
    with(|ambient| std::mem::swap(&mut ambient.frame, frame));
}

/// Puts the frame before back in place.
pub(crate) struct Entered<'a> {
    frame: &'a mut Frame,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        swap(self.frame);
    }
}

/// Puts `frame` in place until it is popped, for where no guard can be held. It comes back at once while the thread is being torn
/// down.
pub(crate) fn push(frame: Frame) -> Option<Frame> {
    let mut frame = Some(frame);
    with(|ambient| {
        let before = std::mem::replace(&mut ambient.frame, frame.take()?);
        ambient.pushed.push(before);
        Some(())
    });
    frame
}

/// Takes the frame that was pushed last out of its place.
pub(crate) fn pop() -> Option<Frame> {
    with(|ambient| {
        let before = ambient.pushed.pop()?;
        Some(std::mem::replace(&mut ambient.frame, before))
    })
    .flatten()
}

/// Runs `f` outside any call.
pub(crate) fn outside<T>(f: impl FnOnce() -> T) -> T {
    let mut outside = Frame::outside();
    let _entered = enter(&mut outside);
    f()
}

/// The listeners that must not hear of what happens here, for a thread that works on behalf of this one.
pub(crate) fn muted() -> Vec<u64> {
    with(|ambient| ambient.muted.clone()).unwrap_or_default()
}

/// Whether a listener is running on behalf of which this code runs.
pub(crate) fn is_muted(listener: u64) -> bool {
    with(|ambient| ambient.muted.contains(&listener)).unwrap_or(false)
}

/// Runs `f` with `listeners` muted besides those that are.
pub(crate) fn mute<T>(listeners: &[u64], f: impl FnOnce() -> T) -> T {
    struct Unmute(usize);

    impl Drop for Unmute {
        fn drop(&mut self) {
            with(|ambient| ambient.muted.truncate(self.0));
        }
    }

    if listeners.is_empty() {
        return f();
    }
    let _unmute = with(|ambient| {
        let before = ambient.muted.len();
        ambient.muted.extend_from_slice(listeners);
        Unmute(before)
    });
    f()
}
