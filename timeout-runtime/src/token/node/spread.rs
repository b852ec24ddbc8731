//! How a signal travels from a node to every token below.

use std::collections::HashSet;
use std::task::Waker;

use crate::clock_hold::ClockHold;
use crate::error::{Cause, Reason};
use crate::sync::{Ordering, lock};
use crate::terms::Terms;
use crate::{background, parking, timer, unwind};

use super::super::links::{Callback, Fallout};
use super::{Head, NodeWeak, PLAIN, code};

/// Runs each callback on a background thread. Paused time stands still meanwhile: a callback makes an
/// operation stop, and grace must not pass before that.
pub(super) fn run_callbacks(callbacks: Vec<Callback>) {
    if callbacks.is_empty() {
        return;
    }
    let hold = ClockHold::here();
    for callback in callbacks {
        let hold = hold.clone();
        background::run(move || {
            callback.run();
            drop(hold);
        });
    }
}

/// Wakes them all: one that panics keeps no other from being woken.
fn wake_all(wakers: Vec<Waker>) {
    let mut wakers = wakers.into_iter();
    while !wakers.as_slice().is_empty() {
        unwind::contain(|| wakers.by_ref().for_each(Waker::wake));
    }
}

/// What makes a token fire.
pub(super) enum Signal {
    /// Its deadline has come.
    Deadline,
    /// Somebody says so, with a reason perhaps.
    From(Cause, Option<Reason>),
    /// As `From`, before the token was there.
    Earlier(Cause, Option<Reason>),
}

impl Head {
    /// The cause as this node reads it when it comes from above.
    pub(super) fn hears(&self, cause: Cause) -> Cause {
        match self.terms {
            // The call's own node has done so.
            Terms::Ahead(_) => cause,
            _ if self.terms.is_call() => cause.entering(),
            _ => cause,
        }
    }

    /// The deadline has come, unless it has been forgotten meanwhile. Callbacks run on background threads.
    pub(crate) fn expire(&self) {
        run_callbacks(self.send(Signal::Deadline));
    }

    /// Fires with `cause` unless the token has fired before. Callbacks run on background threads.
    pub(crate) fn fire(&self, cause: Cause, reason: Option<&Reason>) {
        run_callbacks(self.spread(cause, reason));
    }

    /// As `fire`, for a caller that must not be held up: wakers of other code run on a background thread too.
    pub(crate) fn fire_without_waiting(&self, cause: Cause) {
        let Fallout {
            wakers, callbacks, ..
        } = self.mark_all(Signal::From(cause, None));
        let (ours, foreign): (Vec<_>, Vec<_>) = wakers.into_iter().partition(parking::unparks);
        ours.into_iter().for_each(Waker::wake);
        for waker in foreign {
            background::run(move || waker.wake());
        }
        run_callbacks(callbacks);
    }

    /// Fires with `cause` unless the token has fired before, and wakes all who wait. What is left to do is to run the callbacks.
    pub(crate) fn spread(&self, cause: Cause, reason: Option<&Reason>) -> Vec<Callback> {
        self.send(Signal::From(cause, reason.cloned()))
    }

    /// Sends a signal down to every token below, and wakes all who wait. The callbacks are left to
    /// be run.
    pub(super) fn send(&self, signal: Signal) -> Vec<Callback> {
        let Fallout {
            wakers, callbacks, ..
        } = self.mark_all(signal);
        wake_all(wakers);
        callbacks
    }

    /// Sends a signal down to every token below. When it returns they all read fired, also if somebody else is at it.
    /// What is left are the wakers and the callbacks.
    fn mark_all(&self, signal: Signal) -> Fallout {
        let mut fallout = Fallout::default();
        // Where lines of tokens meet, or another one sends a signal too, a token is met that has fired already.
        let mut met = HashSet::new();
        self.mark(signal, &mut fallout);
        while let Some((child, cause, reason)) = fallout.children.pop() {
            if child.cause().is_none() || met.insert(child.address()) {
                child.mark(Signal::From(child.hears(cause), reason), &mut fallout);
            }
        }
        if self.cause().is_some() {
            self.reached.store(1, Ordering::Release);
        }
        fallout.alarms.drain(..).for_each(timer::disarm);
        fallout
    }

    /// Fires this one token, if it has not fired, and finds those that its signal has to reach.
    fn mark(&self, signal: Signal, fallout: &mut Fallout) {
        if self.reached.load(Ordering::Acquire) != 0 {
            return;
        }
        let mut links = lock(&self.links);
        if self.cause().is_none() {
            // Who says that the deadline has come has looked. Only that it may have been forgotten since.
            let is_live = self.state.load(Ordering::Acquire) != PLAIN;
            let is_due = is_live && (matches!(signal, Signal::Deadline) || self.terms.is_due());
            let (cause, reason) = match signal {
                Signal::Earlier(cause, reason) => (cause, reason),
                // Whoever comes after the deadline comes too late to be the cause.
                _ if is_due => (self.terms.signal_cause(), None),
                Signal::From(cause, reason) => (cause, reason),
                Signal::Deadline => return,
            };
            if reason.is_some() {
                links.more().reason = reason;
            }
            // With `cancel = false` the deadline does not cancel the token, but it came first.
            let terms = &self.terms;
            if terms.is_call() && !terms.fires() && terms.has_reached(terms.deadline()) {
                links.more().after_deadline = true;
            }
            self.state.store(code(cause), Ordering::Release);
            links.release(fallout);
        }
        if let (Some(cause), Some(more)) = (self.cause(), &links.more) {
            fallout.children.reserve(more.children.len());
            let children = more.children.values().filter_map(NodeWeak::upgrade);
            fallout
                .children
                .extend(children.map(|child| (child, cause, more.reason.clone())));
        }
    }
}
