//! What the current call hands to the calls made inside it.
//!
//! A thread has one frame at a time: that of the call whose operation it runs, or the one outside any call. Whoever runs an
//! operation, or polls or drops a piece of one, swaps the operation's frame in and, by a guard, out again, also when a panic passes.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::alarm::CallerAlarm;
use crate::deadline::{Clock, Deadline};
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

/// The deadline and the token that calls made here take part in.
///
/// Annotated calls join the context around them by themselves, across worker threads too. Threads and tasks that you start
/// join it only if you say so:
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::{CallContext, TimeoutError, timeout};
///
/// #[timeout(name = "outer", secs = 5)]
/// fn outer() -> Result<bool, TimeoutError> {
///     let context = CallContext::current();
///     let helper = std::thread::spawn(move || {
///         context.run(|| timeout_runtime::Deadline::current().remaining().is_some())
///     });
///     Ok(helper.join().unwrap())
/// }
///
/// assert!(outer()?);
/// # Ok::<(), TimeoutError>(())
/// ```
#[derive(Clone)]
pub struct CallContext {
    deadline: Deadline,
    token: Option<CancelToken>,
}

impl CallContext {
    /// The context of the call that this code runs in; [`detached`](Self::detached) outside any.
    #[must_use]
    pub fn current() -> Self {
        match current() {
            None => Self::detached(),
            // A call's deadline is its token's, which forgets it when the call has ended in time.
            Some(outer) => Self {
                deadline: outer.bare,
                token: Some(outer.token),
            },
        }
    }

    /// No deadline, no token: for work that must go on after the call around it has ended.
    #[must_use]
    pub fn detached() -> Self {
        Self {
            deadline: Deadline::never(),
            token: None,
        }
    }

    /// The same context with this deadline too; the earlier one holds.
    #[must_use]
    pub fn with_deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.deadline = self.deadline.min(deadline.into());
        self
    }

    /// The same context with this token too: either one stops what runs inside.
    #[must_use]
    pub fn with_token(mut self, token: &CancelToken) -> Self {
        self.token = Some(match &self.token {
            Some(own) => CancelToken::linked([own, token]),
            None => token.clone(),
        });
        self
    }

    /// The nearest deadline of the context and its token. Of a call that has ended in time since, none is left.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        match &self.token {
            Some(token) => self.deadline.min(token.deadline()),
            None => self.deadline,
        }
    }

    /// The token; one that never fires where there is none.
    #[must_use]
    pub fn token(&self) -> CancelToken {
        self.token.clone().unwrap_or_default()
    }

    /// Runs `f` inside this context.
    pub fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        let mut frame = self.frame();
        let _entered = enter(&mut frame);
        f()
    }

    /// A future that is polled and dropped inside this context. Cancel safe if `future` is.
    pub fn scope<F: Future>(&self, future: F) -> Scope<F> {
        Scope {
            frame: self.frame(),
            alarm: CallerAlarm::default(),
            future: Some(future),
        }
    }

    fn frame(&self) -> Frame {
        let terms = Terms::context(self.deadline);
        let token = match &self.token {
            // One token has to hear both.
            Some(token) if !terms.signal.is_never() => {
                let parents = [token.0.clone()];
                let terms = terms.clone();
                Some(CancelToken(Node::new(
                    terms,
                    Watch::Clocked,
                    None,
                    &parents,
                    (),
                )))
            }
            token => token.clone(),
        };
        Frame::new(terms, token)
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("deadline", &self.deadline())
            .field("token", &self.token)
            .finish()
    }
}

pin_project! {
    /// A future inside a context; made by [`CallContext::scope`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Scope<F> {
        frame: Frame,
        alarm: CallerAlarm,
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Scope<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _entered = enter(this.frame);
            this.future.set(None);
        }
    }
}

impl<F: Future> Future for Scope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if let Some(token) = &this.frame.token {
            // By a virtual clock, nobody fires it but who looks.
            token.0.fired();
        }
        let polled = {
            let _entered = enter(this.frame);
            match this.future.as_pin_mut() {
                Some(future) => future.poll(context),
                None => Poll::Pending,
            }
        };
        let Terms { clock, signal, .. } = this.frame.terms;
        if polled.is_pending() && this.frame.token.is_some() && clock != Clock::Real {
            this.alarm.set(clock, signal, context);
        }
        polled
    }
}

impl<F> fmt::Debug for Scope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}
