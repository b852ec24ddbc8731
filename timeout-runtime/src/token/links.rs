//! What hangs on a token: its caller, the tokens below, those who wait, and what is to be run. Guarded by the node's lock.

use std::sync::Weak;
use std::task::Waker;

use slab::Slab;

use crate::error::{Cause, Reason};
use crate::timer;

use super::node::Node;

/// What is run when a token fires.
pub(crate) type Callback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(super) struct Links {
    /// The caller of the call that this token belongs to.
    pub(super) owner: Option<Waker>,
    pub(super) more: Option<Box<More>>,
}

/// What most tokens never have.
#[derive(Default)]
pub(super) struct More {
    pub(super) children: Slab<Weak<Node>>,
    pub(super) waiters: Slab<Option<Waker>>,
    pub(super) callbacks: Slab<Callback>,
    pub(super) alarm: Option<timer::Key>,
    pub(super) reason: Option<Reason>,
}

/// What firing has found in the links, to be dealt with once the locks are free.
#[derive(Default)]
pub(super) struct Fallout {
    pub(super) children: Vec<(Weak<Node>, Cause, Option<Reason>)>,
    pub(super) wakers: Vec<Waker>,
    pub(super) callbacks: Vec<Callback>,
    pub(super) alarms: Vec<timer::Key>,
}

impl Links {
    pub(super) fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Moves out all whom a signal reaches, but for the children, who stay until they are dropped.
    pub(super) fn release(&mut self, fallout: &mut Fallout) {
        fallout.wakers.extend(self.owner.take());
        let Some(more) = &mut self.more else {
            return;
        };
        let waiters = std::mem::take(&mut more.waiters);
        let callbacks = std::mem::take(&mut more.callbacks);
        fallout.alarms.extend(more.alarm.take());
        fallout
            .wakers
            .extend(waiters.into_iter().filter_map(|(_, waker)| waker));
        fallout
            .callbacks
            .extend(callbacks.into_iter().map(|(_, callback)| callback));
    }
}
