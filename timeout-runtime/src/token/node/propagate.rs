//! Cancels a token and all tokens below it.

use std::collections::HashSet;
use std::task::Waker;

use crate::error::{Cause, Reason};
use crate::sync::{Ordering, lock};
use crate::terms::Terms;
use crate::{background, parking, timer, unwind};

use super::super::links::{Callback, ToNotify};
use super::{Head, NodeWeak, PLAIN, code};

/// Runs each callback on a background thread.
pub(super) fn run_callbacks(callbacks: Vec<Callback>) {
    for callback in callbacks {
        background::run(move || callback.run());
    }
}

/// Wakes all. A waker that panics keeps no other from being woken.
fn wake_all(wakers: Vec<Waker>) {
    let mut wakers = wakers.into_iter();
    while !wakers.as_slice().is_empty() {
        unwind::contain(|| wakers.by_ref().for_each(Waker::wake));
    }
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
        match self.terms {
            // The node of the call has translated it already.
            Terms::Ahead(_) => cause,
            _ if self.terms.is_call() => cause.entering(),
            _ => cause,
        }
    }

    /// Cancels the token at its deadline, unless the call has ended in time. Callbacks run on
    /// background threads.
    pub(crate) fn expire(&self) {
        run_callbacks(self.send(Trigger::Deadline));
    }

    /// Cancels the token with `cause`, unless it is cancelled. Callbacks run on background threads.
    pub(crate) fn cancel(&self, cause: Cause, reason: Option<&Reason>) {
        run_callbacks(self.propagate(cause, reason));
    }

    /// As `cancel`, for a caller that must not be delayed: wakers of other code run on background
    /// threads too.
    pub(crate) fn cancel_without_waiting(&self, cause: Cause) {
        let ToNotify {
            wakers, callbacks, ..
        } = self.mark_all(Trigger::From(cause, None));
        let (ours, foreign): (Vec<_>, Vec<_>) = wakers.into_iter().partition(parking::unparks);
        ours.into_iter().for_each(Waker::wake);
        for waker in foreign {
            background::run(move || waker.wake());
        }
        run_callbacks(callbacks);
    }

    /// Cancels the token unless it is cancelled, and wakes the waiters. Returns the callbacks to
    /// run.
    pub(crate) fn propagate(&self, cause: Cause, reason: Option<&Reason>) -> Vec<Callback> {
        self.send(Trigger::From(cause, reason.cloned()))
    }

    /// Cancels the token and all below, and wakes the waiters. Returns the callbacks to run.
    pub(super) fn send(&self, trigger: Trigger) -> Vec<Callback> {
        let ToNotify {
            wakers, callbacks, ..
        } = self.mark_all(trigger);
        wake_all(wakers);
        callbacks
    }

    /// Cancels the token and all below. When this returns they are all cancelled, even if another
    /// thread cancels them at the same time. Returns the wakers and callbacks.
    fn mark_all(&self, trigger: Trigger) -> ToNotify {
        let mut to_notify = ToNotify::default();
        // A node may be reached twice: by two paths, or after another thread has cancelled it.
        let mut met = HashSet::new();
        self.mark(trigger, &mut to_notify);
        while let Some((child, cause, reason)) = to_notify.children.pop() {
            if child.known_cause().is_none() || met.insert(child.address()) {
                child.mark(
                    Trigger::From(child.cause_from_parent(cause), reason),
                    &mut to_notify,
                );
            }
        }
        if self.known_cause().is_some() {
            self.reached.store(1, Ordering::Release);
        }
        to_notify.alarms.drain(..).for_each(timer::disarm);
        to_notify
    }

    /// Cancels this one token, unless it is cancelled, and collects what the cancellation notifies.
    fn mark(&self, trigger: Trigger, to_notify: &mut ToNotify) {
        if self.reached.load(Ordering::Acquire) != 0 {
            return;
        }
        let mut links = lock(&self.links);
        if self.known_cause().is_none() {
            // For `Trigger::Deadline` the clock was read. The call may have ended in time since.
            let is_live = self.state.load(Ordering::Acquire) != PLAIN;
            let is_due = is_live && (matches!(trigger, Trigger::Deadline) || self.terms.is_due());
            let (cause, reason) = match trigger {
                Trigger::Earlier(cause, reason) => (cause, reason),
                // A canceller that comes after the deadline is not the cause.
                _ if is_due => (self.terms.deadline_cause(), None),
                Trigger::From(cause, reason) => (cause, reason),
                Trigger::Deadline => return,
            };
            if reason.is_some() {
                links.more().reason = reason;
            }
            // With `cancel = false` the deadline does not cancel the token, but it came first.
            let terms = &self.terms;
            if terms.is_call()
                && !terms.cancels_at_deadline()
                && terms.has_reached(terms.deadline())
            {
                links.more().after_deadline = true;
            }
            self.state.store(code(cause), Ordering::Release);
            links.release(to_notify);
        }
        if let (Some(cause), Some(more)) = (self.known_cause(), &links.more) {
            to_notify.children.reserve(more.children.len());
            let children = more.children.values().filter_map(NodeWeak::upgrade);
            to_notify
                .children
                .extend(children.map(|child| (child, cause, more.reason.clone())));
        }
    }
}
