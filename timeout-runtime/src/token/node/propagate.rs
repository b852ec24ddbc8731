//! Cancels a token and all its descendants, and notifies their waiters and callbacks.

use std::collections::HashSet;
use std::iter;
use std::ops::Deref;
use std::task::Waker;

use crate::outcome::{Cause, Reason};
use crate::sync::{Ordering, lock};
use crate::threads::background;
use crate::unwind;

use super::super::alarm::TokenAlarm;
use super::super::callback::Callback;
use super::super::links::ToNotify;
use super::super::owner::Owner;
use super::{Head, NodeRef, PLAIN, code};

/// Runs each callback on a background thread.
fn run_callbacks(callbacks: Vec<Callback>) {
    background::run_each(callbacks.into_iter().map(|callback| || callback.run()));
}

fn wake(waker: Waker) {
    unwind::contain(|| waker.wake());
}

/// What cancels a token.
pub(super) enum Trigger {
    /// Its deadline.
    Deadline,
    /// A canceller, with a cause and perhaps a reason.
    From(Cause, Option<Reason>),
    /// A parent that was cancelled before the token was linked to it.
    Earlier(Cause, Option<Reason>),
}

impl Head {
    /// The cause in this node when a parent is cancelled with `cause`.
    pub(super) fn cause_from_parent(&self, cause: Cause) -> Cause {
        match self.owner {
            Owner::Call(_) => cause.entering(),
            // The node of a later call has translated it already.
            Owner::Later(_) | Owner::Context(_) | Owner::None => cause,
        }
    }

    /// Cancels the token at its deadline, unless the call has ended in time.
    pub(crate) fn expire(&self) {
        self.send(Trigger::Deadline);
    }

    /// Cancels the token with `cause`, unless it is cancelled.
    ///
    /// If another thread cancels the token at the same time, this also wakes the waiters that the
    /// other thread has not woken yet.
    pub(crate) fn cancel(&self, cause: Cause, reason: Option<&Reason>) {
        self.send(Trigger::From(cause, reason.cloned()));
    }

    /// As `cancel`, for a caller that must not be delayed: wakers of other code run on background
    /// threads too.
    pub(crate) fn cancel_without_waiting(&self, cause: Cause) {
        let to_notify = self.mark_all(Trigger::From(cause, None));
        self.wake_all(to_notify.callers, &to_notify.waiting, |waker| {
            background::run(|| waker.wake());
        });
        run_callbacks(to_notify.callbacks);
    }

    /// Cancels the token and all below. Callbacks run on background threads, so that none delays
    /// the canceller or another callback. A waker that blocks delays no callback either.
    pub(super) fn send(&self, trigger: Trigger) {
        let to_notify = self.mark_all(trigger);
        run_callbacks(to_notify.callbacks);
        self.wake_all(to_notify.callers, &to_notify.waiting, wake);
    }

    /// Wakes callers, and the waiters of this token and of those below. Waiters stay in the links
    /// until they are woken, so that a canceller can also wake those that a slower, concurrent
    /// canceller has not woken yet.
    fn wake_all(&self, callers: Vec<Waker>, below: &[NodeRef], wake: impl Fn(Waker)) {
        callers.into_iter().for_each(&wake);
        let mut taken = Vec::new();
        for head in iter::once(self).chain(below.iter().map(Deref::deref)) {
            loop {
                lock(&head.links).take_unwoken(&mut taken);
                if taken.is_empty() {
                    break;
                }
                taken.drain(..).for_each(&wake);
            }
        }
        if self.known_cause().is_some() {
            self.reached.store(1, Ordering::Release);
        }
    }

    /// Cancels the token and all below, and unparks the threads that wait for them. When this
    /// returns all are cancelled, even if another thread cancels them at the same time. Returns the
    /// other wakers and the callbacks.
    fn mark_all(&self, trigger: Trigger) -> ToNotify {
        let mut to_notify = ToNotify::default();
        // A node may be reached twice: by two paths, or after another thread has cancelled it.
        let mut met = HashSet::new();
        self.mark(trigger, &mut to_notify);
        while let Some((child, cause, reason)) = to_notify.below.pop() {
            if child.known_cause().is_none() || met.insert(child.address()) {
                let trigger = Trigger::From(child.cause_from_parent(cause), reason);
                if child.mark(trigger, &mut to_notify) {
                    to_notify.waiting.push(child);
                }
            }
        }
        to_notify.parked.drain(..).for_each(Waker::wake);
        to_notify.alarms.drain(..).for_each(TokenAlarm::disarm);
        to_notify
    }

    /// Whether the deadline of a call with `cancel = false` has passed.
    fn has_outlived_deadline(&self) -> bool {
        let Some(terms) = self.terms() else {
            return false;
        };
        !terms.cancels_at_deadline() && terms.clock().has_visibly_reached(terms.deadline())
    }

    /// Cancels this one token, unless it is cancelled, and collects what the cancellation notifies.
    /// Returns whether it has unwoken waiters.
    fn mark(&self, trigger: Trigger, to_notify: &mut ToNotify) -> bool {
        if self.reached.load(Ordering::Acquire) != 0 {
            return false;
        }
        let mut links = lock(&self.links);
        if self.known_cause().is_none() {
            // For `Trigger::Deadline` the clock was read. The call may have ended in time since.
            let is_live = self.state.load(Ordering::Acquire) != PLAIN;
            let due = match trigger {
                // The canceller was first, although it is linked later.
                Trigger::Earlier(..) => None,
                _ if !is_live => None,
                Trigger::Deadline => Some(self.expiry().cause),
                Trigger::From(..) => self.expiry().cause_if_due(),
            };
            let (cause, reason) = match (due, trigger) {
                // A canceller that comes after the deadline is not the cause.
                (Some(cause), _) => (cause, None),
                (None, Trigger::From(cause, reason) | Trigger::Earlier(cause, reason)) => {
                    (cause, reason)
                }
                (None, Trigger::Deadline) => return false,
            };
            if reason.is_some() {
                links.more().reason = reason;
            }
            // With `cancel = false` the deadline does not cancel the token, but it came first.
            if self.has_outlived_deadline() {
                links.more().after_deadline = true;
            }
            self.state.store(code(cause), Ordering::Release);
            links.release(to_notify);
        }
        if let (Some(cause), Some(more)) = (self.known_cause(), &links.more) {
            to_notify.below.push(more, cause);
        }
        links.has_unwoken()
    }
}
