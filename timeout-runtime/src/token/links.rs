//! [`Links`]: what a token is linked to: the tokens above and below, its alarm, and what a
//! cancellation wakes or runs: the waiting caller of the call, other waiters, and callbacks.
//! Guarded by the lock of the node.

use std::task::Waker;
use std::vec;

use crate::memory::Table;
use crate::outcome::{Cause, Reason};
use crate::threads::parking;
use crate::timer;
use crate::unwind;

use super::callback::Callback;
use super::node::{NodeRef, NodeWeak, TIMER};
use super::parents::{self, Link, Parents};

#[derive(Default)]
pub(super) struct Links {
    /// Wakes the caller of the call that this token belongs to.
    pub(super) caller_waker: Option<Waker>,
    /// The tokens above. Set once.
    pub(super) parents: Option<Box<Parents>>,
    pub(super) more: Option<Box<More>>,
}

/// Links that most tokens never have.
#[derive(Default)]
pub(super) struct More {
    pub(super) children: Table<NodeWeak>,
    pub(super) waiters: Table<Option<Waker>>,
    /// Waiters of a cancelled token that are still to be woken.
    unwoken: vec::IntoIter<Waker>,
    pub(super) callbacks: Table<Callback>,
    pub(super) alarm: Option<timer::Key>,
    pub(super) reason: Option<Reason>,
    /// The token was cancelled after the deadline of its call had passed.
    pub(super) after_deadline: bool,
}

/// What a cancellation took out of the links, to be woken or run without a lock.
#[derive(Default)]
pub(super) struct ToNotify {
    pub(super) children: Vec<(NodeRef, Cause, Option<Reason>)>,
    /// Wakers of threads that park in a wait of ours. They cannot block.
    pub(super) parked: Vec<Waker>,
    /// The other wakers of callers.
    pub(super) callers: Vec<Waker>,
    /// The tokens below that have unwoken waiters.
    pub(super) waiting: Vec<NodeRef>,
    pub(super) callbacks: Vec<Callback>,
    pub(super) alarms: Vec<timer::Key>,
}

impl Links {
    pub(super) fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Moves everything that a cancellation notifies. Children stay until they are dropped.
    pub(super) fn release(&mut self, to_notify: &mut ToNotify) {
        if let Some(caller) = self.caller_waker.take() {
            if parking::unparks(&caller) {
                to_notify.parked.push(caller);
            } else {
                to_notify.callers.push(caller);
            }
        }
        let Some(more) = &mut self.more else {
            return;
        };
        to_notify.alarms.extend(more.alarm.take());
        to_notify.callbacks.extend(more.callbacks.take_all());
        let waiters = more.waiters.take_all().flatten();
        let (parked, others): (Vec<_>, Vec<_>) = waiters.partition(parking::unparks);
        to_notify.parked.extend(parked);
        more.unwoken = others.into_iter();
    }

    /// Takes a waiter that is still to be woken.
    pub(super) fn next_unwoken(&mut self) -> Option<Waker> {
        let more = self.more.as_mut()?;
        let next = more.unwoken.next();
        if next.is_none() {
            more.unwoken = vec::IntoIter::default();
        }
        next
    }

    pub(super) fn has_unwoken(&self) -> bool {
        let more = self.more.as_ref();
        more.is_some_and(|more| !more.unwoken.as_slice().is_empty())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.caller_waker.is_none() && self.parents.is_none() && self.more.is_none()
    }

    /// Called when the token is dropped: removes its alarm, unlinks it from its parents, and drops
    /// values of users one by one.
    pub(super) fn release_all(self) {
        let Self {
            caller_waker,
            parents,
            more,
        } = self;
        unwind::drop_catching(caller_waker);
        if let Some(mut more) = more {
            more.alarm
                .take()
                .into_iter()
                .for_each(|key| TIMER.disarm(key));
            more.waiters.take_all().for_each(unwind::drop_catching);
            more.unwoken.for_each(unwind::drop_catching);
            unwind::drop_catching(more.reason.take());
        }
        if let Some(parents) = parents {
            for Link { parent, key } in parents.as_slice() {
                drop(parent.unlink(|more| more.children.remove(*key)));
            }
            parents::let_go(*parents);
        }
    }
}
