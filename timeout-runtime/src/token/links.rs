//! [`Links`]: what a token is linked to: the tokens above and below, its alarm, and what a
//! cancellation wakes or runs: the waiting caller of the call, other waiters, and callbacks.
//! Guarded by the lock of the node.

use std::task::Waker;
use std::vec;

use crate::memory::Table;
use crate::outcome::{Cause, Reason};
use crate::threads::parking;
use crate::unwind;

use super::alarm::TokenAlarm;
use super::callback::Callback;
use super::node::{NodeRef, NodeWeak};
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
    pub(super) alarm: Option<TokenAlarm>,
    pub(super) reason: Option<Reason>,
    /// The token was cancelled after the deadline of its call had passed.
    pub(super) after_deadline: bool,
}

/// What a cancellation took out of the links, to be woken or run without a lock.
#[derive(Default)]
pub(super) struct ToNotify {
    pub(super) below: Below,
    /// Wakers of threads that park in a wait of ours. They cannot block.
    pub(super) parked: Vec<Waker>,
    /// The other wakers of callers.
    pub(super) callers: Vec<Waker>,
    /// The tokens below that have unwoken waiters.
    pub(super) waiting: Vec<NodeRef>,
    pub(super) callbacks: Vec<Callback>,
    pub(super) alarms: Vec<TokenAlarm>,
}

/// Tokens below cancelled ones, each with the cause and the reason of the one above. The tokens
/// below one token share these.
#[derive(Default)]
pub(super) struct Below {
    nodes: Vec<NodeRef>,
    /// The index of the first node of each group, and what the nodes of the group share.
    groups: Vec<(usize, Cause, Option<Reason>)>,
}

impl Below {
    pub(super) fn push(&mut self, more: &More, cause: Cause) {
        let first = self.nodes.len();
        self.nodes.reserve(more.children.len());
        self.nodes
            .extend(more.children.values().filter_map(NodeWeak::upgrade));
        if self.nodes.len() > first {
            self.groups.push((first, cause, more.reason.clone()));
        }
    }

    pub(super) fn pop(&mut self) -> Option<(NodeRef, Cause, Option<Reason>)> {
        let node = self.nodes.pop()?;
        let (first, cause, reason) = self.groups.last()?;
        let (cause, reason) = (*cause, reason.clone());
        if *first == self.nodes.len() {
            self.groups.pop();
        }
        Some((node, cause, reason))
    }
}

impl Links {
    pub(super) fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Moves everything that a cancellation notifies. Children stay until they are dropped.
    pub(super) fn release(&mut self, to_notify: &mut ToNotify) {
        if let Some(caller) = self.caller_waker.take() {
            if parking::unparks()(&caller) {
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
        if more.waiters.len() == 0 {
            return;
        }
        let unparks = parking::unparks();
        let mut others = Vec::with_capacity(more.waiters.len());
        for waker in more.waiters.take_all().flatten() {
            if unparks(&waker) {
                to_notify.parked.push(waker);
            } else {
                others.push(waker);
            }
        }
        more.unwoken = others.into_iter();
    }

    /// Takes waiters that are still to be woken: one, or a small part of many. Most stay for a
    /// concurrent canceller, in case that one of those taken blocks when it is woken.
    pub(super) fn take_unwoken(&mut self, taken: &mut Vec<Waker>) {
        let Some(more) = &mut self.more else {
            return;
        };
        let count = (more.unwoken.len() / 8).clamp(1, 32);
        taken.extend(more.unwoken.by_ref().take(count));
        if taken.is_empty() {
            more.unwoken = vec::IntoIter::default();
        }
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
            more.alarm.take().into_iter().for_each(TokenAlarm::disarm);
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
