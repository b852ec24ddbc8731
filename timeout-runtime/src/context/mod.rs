//! [`CallContext`]: the deadline and the token that nested calls inherit, as a value.

pub(crate) mod frame;
mod plain_call;
pub(crate) mod propagator;

use std::fmt;
use std::future::Future;
#[cfg(feature = "tower")]
use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::outcome::TimeoutError;
use crate::probe::ProbeHandle;
use crate::registry::Registration;
use crate::time::test_clock::{ContextClock, PolledParticipant};
use crate::time::{Clock, Deadline};
use crate::token::checks;
use crate::token::node::{NodeRef, Watch};
use crate::token::{CallerAlarm, CancelToken, Owner};

use frame::{Frame, current, enter};

/// The deadline and the token that nested calls inherit.
///
/// An annotated call inherits the context of its enclosing call, also on worker threads. Threads
/// and tasks that you start do not inherit it. Pass the context on with [`run`](Self::run) or
/// [`scope`](Self::scope). The own deadline of a call that has ended in time no longer counts in
/// its context.
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
    clock: ContextClock,
    probe: ProbeHandle,
}

impl CallContext {
    /// Returns the context of the enclosing call, or [`detached`](Self::detached) outside a call.
    #[must_use]
    pub fn current() -> Self {
        match current() {
            None => Self::detached(),
            // The token knows the call's own deadline, and drops it when the call ends in time.
            Some(outer) => Self {
                deadline: outer.context_deadline,
                token: Some(outer.token),
                clock: ContextClock::here(),
                probe: ProbeHandle::here(),
            },
        }
    }

    /// Returns a context without deadline and token, for work that continues after its call.
    ///
    /// ```
    /// use timeout_runtime::{CallContext, CancelToken, TimeoutError, timeout};
    ///
    /// #[timeout(name = "release", secs = 60)]
    /// fn release() -> Result<(), TimeoutError> {
    ///     Ok(())
    /// }
    ///
    /// let request = CancelToken::new();
    /// request.cancel();
    /// CallContext::detached().with_token(&request).run(|| {
    ///     assert!(release().is_err()); // not started after the cancellation
    ///     assert!(CallContext::detached().run(release).is_ok());
    /// });
    /// ```
    #[must_use]
    pub fn detached() -> Self {
        Self {
            deadline: Deadline::never(),
            token: None,
            clock: ContextClock::here(),
            probe: ProbeHandle::here(),
        }
    }

    /// Adds a deadline to the context. The earlier deadline applies.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{CallContext, Deadline};
    ///
    /// let request = Deadline::after(Duration::from_secs(60));
    /// let context = CallContext::current().with_deadline(request);
    /// let step = context.with_deadline(Deadline::after(Duration::from_secs(3600)));
    /// assert_eq!(step.run(Deadline::current), request);
    /// ```
    #[must_use]
    pub fn with_deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.deadline = self.deadline.min(deadline.into());
        self
    }

    /// Adds a token to the context. Cancelling either token cancels the calls in the context.
    ///
    /// ```
    /// use timeout_runtime::{CallContext, CancelToken, check};
    ///
    /// let (shutdown, request) = (CancelToken::new(), CancelToken::new());
    /// let context = CallContext::detached().with_token(&shutdown).with_token(&request);
    /// assert!(context.run(check).is_ok());
    /// shutdown.cancel();
    /// assert!(context.run(check).unwrap_err().is_cancelled());
    /// ```
    #[must_use]
    pub fn with_token(mut self, token: &CancelToken) -> Self {
        self.token = Some(match &self.token {
            Some(own) => CancelToken::linked([own, token]),
            None => token.clone(),
        });
        self
    }

    /// Runs `f` inside this context, on the current thread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{CallContext, CancelToken, Deadline};
    ///
    /// let deadline = Deadline::after(Duration::from_secs(5));
    /// let context = CallContext::detached().with_deadline(deadline);
    /// assert_eq!(context.run(Deadline::current), deadline);
    /// assert!(!context.run(CancelToken::current).is_cancelled());
    /// ```
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn run<T>(&self, f: impl FnOnce() -> T) -> T {
        let _on_clock = self.clock.enter(Location::caller());
        let _probe = self.probe.enter();
        let mut frame = self.frame();
        let _entered = enter(&mut frame);
        f()
    }

    /// Wraps `future`, so that it is polled and dropped inside this context.
    ///
    /// ```
    /// use timeout_runtime::{CallContext, Deadline, TimeoutError, timeout};
    ///
    /// #[timeout(name = "load", secs = 60)]
    /// async fn load() -> Result<bool, TimeoutError> {
    ///     let has_deadline = async { Deadline::current() != Deadline::never() };
    ///     let task = tokio::spawn(CallContext::current().scope(has_deadline));
    ///     Ok(task.await.unwrap())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), TimeoutError> {
    /// assert!(load().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// The returned future is cancel safe if `future` is.
    #[cfg_attr(feature = "test-util", track_caller)]
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        self.enclose(future)
    }

    /// As [`scope`](Self::scope), for any value that is polled.
    #[cfg_attr(feature = "test-util", track_caller)]
    pub(crate) fn enclose<F>(&self, inside: F) -> Scope<F> {
        self.enclose_as(self.clock.polled(Location::caller()), inside)
    }

    /// As `enclose`, for a participant of a test clock.
    pub(crate) fn enclose_as<F>(
        &self,
        participant: Option<PolledParticipant>,
        inside: F,
    ) -> Scope<F> {
        Scope {
            participant,
            probe: self.probe.clone(),
            frame: self.frame(),
            alarm: CallerAlarm::default(),
            inside: Some(inside),
        }
    }

    fn frame(&self) -> Frame {
        let has_deadline = self.deadline != Deadline::never();
        let parents = self.token.as_slice();
        match parents {
            [] if !has_deadline => Frame::Outside,
            [token] if !has_deadline => Frame::Token(token.clone()),
            // A frame holds a single token, so this one follows the deadline and all parents.
            _ => {
                let parents: Vec<NodeRef> = parents.iter().map(|token| token.0.clone()).collect();
                let owner = Owner::context(self.deadline);
                let node = NodeRef::new(owner, Watch::Clocked, &parents);
                Frame::Token(CancelToken(node))
            }
        }
    }
}

impl Deadline {
    /// Returns the deadline of the enclosing call, or [`never`](Self::never) outside a call.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{Deadline, within_blocking};
    ///
    /// let limit = Duration::from_secs(60);
    /// let left = within_blocking(limit, |_token| Deadline::current().remaining())?;
    /// assert!(left.is_some_and(|left| left <= limit));
    /// assert_eq!(Deadline::current(), Deadline::never());
    /// # Ok::<(), timeout_runtime::TimeoutError>(())
    /// ```
    #[must_use]
    pub fn current() -> Self {
        frame::deadline()
    }
}

impl CancelToken {
    /// The token of the current call. Outside any call: a new token.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::{CancelToken, TimeoutError, within_blocking};
    ///
    /// /// A pause between two attempts, which ends with the call.
    /// fn pause() -> Result<(), TimeoutError> {
    ///     CancelToken::current().sleep(Duration::from_secs(600))
    /// }
    ///
    /// let connected = within_blocking(Duration::from_millis(5), |_token| pause());
    /// assert!(connected.unwrap_err().is_timed_out());
    /// ```
    #[must_use]
    pub fn current() -> Self {
        frame::token().unwrap_or_default()
    }

    /// Runs `callback` when the token is cancelled, on a background thread. On a token that is
    /// cancelled already, runs it immediately, on this thread.
    ///
    /// [`cancel`](Self::cancel) does not wait for callbacks. They run at the same time and in no
    /// order, on at most 64 threads. If callbacks block all of these for 10 ms, more are started,
    /// up to 512. The thread that cancels the token runs them itself if the system refuses a
    /// thread, on a target without threads, and in a forked child.
    ///
    /// Callbacks run outside any call. A panic in a callback is caught. A callback is dropped with
    /// its token: if all clones of a token are dropped, it is not called.
    ///
    /// To stop blocking work, use [`interrupt_with`](Self::interrupt_with).
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use timeout_runtime::CancelToken;
    ///
    /// let (sender, receiver) = mpsc::channel();
    /// let token = CancelToken::new();
    /// let _registration = token.on_cancel(move || sender.send("closed").unwrap());
    /// token.cancel();
    /// assert_eq!(receiver.recv(), Ok("closed"));
    /// ```
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) -> Registration {
        self.register(|| frame::outside(callback))
    }
}

/// Returns an error once the enclosing call is cancelled. Returns `Ok` outside a call.
///
/// For loops that have no access to the call's token. Cheaper than
/// `CancelToken::current().check()`:
///
/// ```
/// use timeout_runtime::{TimeoutError, check, timeout};
///
/// fn sum(rows: &[u64]) -> Result<u64, TimeoutError> {
///     let mut sum = 0;
///     for row in rows {
///         check()?;
///         sum += row;
///     }
///     Ok(sum)
/// }
///
/// #[timeout(name = "total", secs = 5)]
/// fn total(rows: Vec<u64>) -> Result<u64, TimeoutError> {
///     sum(&rows)
/// }
///
/// assert_eq!(total(vec![1, 2, 3])?, 6);
/// # Ok::<(), TimeoutError>(())
/// ```
///
/// # Errors
///
/// Returns the error of [`CancelToken::check`] for the call's token.
#[inline]
#[cfg_attr(feature = "test-util", track_caller)]
pub fn check() -> Result<(), TimeoutError> {
    if frame::is_live() && !checks::are_recorded() {
        return Ok(());
    }
    check_token()
}

/// As `check`, by the token of the call.
#[cold]
#[cfg_attr(feature = "test-util", track_caller)]
fn check_token() -> Result<(), TimeoutError> {
    CancelToken::current().check()
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_token = self.token.as_ref().map(CancelToken::deadline);
        let deadline = self.deadline.min(of_token.unwrap_or(Deadline::never()));
        f.debug_struct("CallContext")
            .field("deadline", &deadline)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// A value that is polled inside a context.
    #[must_use = "futures do nothing unless polled"]
    pub(crate) struct Scope<F> {
        participant: Option<PolledParticipant>,
        probe: ProbeHandle,
        frame: Frame,
        alarm: CallerAlarm,
        #[pin]
        inside: Option<F>,
    }

    impl<F> PinnedDrop for Scope<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _entered = enter(this.frame);
            this.inside.set(None);
        }
    }
}

impl<F> Scope<F> {
    /// Polls the inner value with `poll`, in the context.
    pub(crate) fn poll_inside<T>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut F>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let mut participant = self.as_mut().project().participant.take();
        let polled = PolledParticipant::poll(&mut participant, context, |context| {
            self.as_mut().poll_in_context(context, poll)
        });
        *self.project().participant = participant;
        polled
    }

    fn poll_in_context<T>(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut F>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let this = self.project();
        if let Frame::Token(token) = &*this.frame {
            // No timer watches a deadline on a virtual clock: reading the cause cancels the token.
            token.0.cause();
        }
        let polled = {
            let _probe = this.probe.enter();
            let _entered = enter(this.frame);
            match this.inside.as_pin_mut() {
                Some(inside) => poll(inside, context),
                None => Poll::Pending,
            }
        };
        if let (Poll::Pending, Frame::Token(CancelToken(token))) = (&polled, &*this.frame) {
            let expiry = token.expiry();
            // A future that is still pending after the cancellation needs no wake-up for it.
            if expiry.clock != Clock::Real && token.cause().is_none() {
                this.alarm.set(expiry.clock, expiry.at, context);
            }
        }
        polled
    }

    /// Drops the inner value in the context, and moves the context to `next`.
    #[cfg(feature = "tower")]
    pub(crate) fn hand_over<T>(self: Pin<&mut Self>, next: T) -> Scope<T> {
        let mut this = self.project();
        {
            let _entered = enter(this.frame);
            this.inside.set(None);
        }
        Scope {
            participant: this.participant.take(),
            probe: this.probe.clone(),
            frame: mem::replace(this.frame, Frame::Outside),
            alarm: CallerAlarm::default(),
            inside: Some(next),
        }
    }

    /// Wraps `inside` without a context.
    #[cfg(feature = "tower")]
    pub(crate) fn outside(inside: F) -> Self {
        Self {
            participant: None,
            probe: ProbeHandle::here(),
            frame: Frame::Outside,
            alarm: CallerAlarm::default(),
            inside: Some(inside),
        }
    }

    #[cfg(feature = "tower")]
    pub(crate) fn get_ref(&self) -> Option<&F> {
        self.inside.as_ref()
    }
}

impl<F: Future> Future for Scope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.poll_inside(context, F::poll)
    }
}
