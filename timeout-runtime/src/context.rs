//! What the current call hands to the calls made inside it.
//!
//! A thread has at most one frame at a time: that of the call whose operation it runs. Whoever runs an operation, or polls or
//! drops a piece of one, swaps the operation's frame in and, by a guard, out again, also when a panic passes.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::deadline::Deadline;
use crate::error::Cause;
use crate::token::CancelToken;
use crate::token::node::Node;
use crate::token::spec::{Origin, Spec, Watch};

/// The frame of one call.
#[derive(Clone)]
pub(crate) struct Frame {
    /// What calls inside inherit, and when the call's token fires by itself.
    pub(crate) deadline: Deadline,
    /// The cause with which that happens.
    pub(crate) cause: Cause,
    /// When the call's caller is gone at the latest.
    pub(crate) end: Deadline,
    pub(crate) origin: Origin,
    /// The call's token, once somebody has asked for it.
    pub(crate) token: Option<CancelToken>,
}

impl Frame {
    pub(crate) fn with_token(mut self, token: CancelToken) -> Self {
        self.token = Some(token);
        self
    }

    /// The call's token; made now if nobody has asked before.
    pub(crate) fn token(&mut self) -> &CancelToken {
        self.token.get_or_insert_with(|| {
            let spec = Spec {
                origin: self.origin,
                deadline: self.deadline,
                cause: self.cause,
                watch: Watch::Clocked,
                is_call: true,
                owner: None,
            };
            CancelToken(Node::new(spec, &[], ()))
        })
    }
}

#[derive(Default)]
struct Ambient {
    frame: Option<Frame>,
    /// The listeners that this code runs inside of.
    muted: Vec<u64>,
}

thread_local! {
    static AMBIENT: RefCell<Ambient> = RefCell::default();
}

/// `None` while the thread is being torn down: there is no call around destructors of its thread-locals.
fn with<T>(f: impl FnOnce(&mut Ambient) -> T) -> Option<T> {
    AMBIENT
        .try_with(|ambient| f(&mut ambient.borrow_mut()))
        .ok()
}

/// The token of the current call.
pub(crate) fn current_token() -> Option<CancelToken> {
    with(|ambient| ambient.frame.as_mut().map(|frame| frame.token().clone())).flatten()
}

/// The deadline that a call made here inherits, and the end of the call around it.
pub(crate) fn inherited() -> (Deadline, Deadline) {
    with(|ambient| {
        ambient
            .frame
            .as_ref()
            .map(|frame| (frame.deadline, frame.end))
    })
    .flatten()
    .unwrap_or((Deadline::never(), Deadline::never()))
}

/// The current frame is the one in `frame` for as long as the guard lives.
pub(crate) fn enter(frame: &mut Option<Frame>) -> Entered<'_> {
    swap(frame);
    Entered { frame }
}

fn swap(frame: &mut Option<Frame>) {
    with(|ambient| std::mem::swap(&mut ambient.frame, frame));
}

/// Puts the frame before back in place.
pub(crate) struct Entered<'a> {
    frame: &'a mut Option<Frame>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        swap(self.frame);
    }
}

/// Runs `f` outside any call.
pub(crate) fn outside<T>(f: impl FnOnce() -> T) -> T {
    let mut none = None;
    let _entered = enter(&mut none);
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
        Self {
            deadline: inherited().0,
            token: current_token(),
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

    /// The deadline.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.deadline
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
            future: Some(future),
        }
    }

    fn frame(&self) -> Option<Frame> {
        if self.token.is_none() && self.deadline.is_never() {
            return None;
        }
        Some(Frame {
            deadline: self.deadline,
            cause: Cause::DeadlineExceeded,
            end: self.deadline,
            origin: Origin::NONE,
            token: self.token.clone(),
        })
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("deadline", &self.deadline)
            .field("token", &self.token)
            .finish()
    }
}

pin_project! {
    /// A future inside a context; made by [`CallContext::scope`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Scope<F> {
        frame: Option<Frame>,
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
        let _entered = enter(this.frame);
        match this.future.as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> fmt::Debug for Scope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}
