//! What hangs on a token: its caller, the tokens below, those who wait, and what is to be run. Guarded by the node's lock.

use std::task::Waker;

use crate::error::{Cause, Reason};
use crate::frame;
use crate::memory::Table;
use crate::muted;
use crate::timer;
use crate::unwind::{self, Kept};

use super::node::{NodeRef, NodeWeak};
use super::parents::{self, Link, Parents};

/// What is run when a token fires, and the listeners that must not hear of what it causes.
pub(crate) struct Callback {
    callback: Kept<Box<dyn FnOnce() + Send>>,
    muted: Vec<u64>,
}

impl Callback {
    pub(crate) fn new(callback: impl FnOnce() + Send + 'static) -> Self {
        Self {
            callback: Kept::new(Box::new(callback)),
            muted: muted::all(),
        }
    }

    /// Runs it outside any call; a panic ends here.
    pub(crate) fn run(self) {
        if let Some(callback) = self.callback.take() {
            muted::mute(&self.muted, || {
                frame::outside(|| unwind::contain(callback));
            });
        }
    }
}

#[derive(Default)]
pub(super) struct Links {
    /// The caller of the call that this token belongs to.
    pub(super) caller_waker: Option<Waker>,
    /// What it hangs on; set once.
    pub(super) parents: Option<Box<Parents>>,
    pub(super) more: Option<Box<More>>,
}

/// What most tokens never have.
#[derive(Default)]
pub(super) struct More {
    pub(super) children: Table<NodeWeak>,
    pub(super) waiters: Table<Option<Waker>>,
    pub(super) callbacks: Table<Callback>,
    pub(super) alarm: Option<timer::Key>,
    pub(super) reason: Option<Reason>,
    /// The token was cancelled after the deadline of its call had passed.
    pub(super) after_deadline: bool,
}

/// What firing has found in the links, to be dealt with once the locks are free.
#[derive(Default)]
pub(super) struct ToNotify {
    pub(super) children: Vec<(NodeRef, Cause, Option<Reason>)>,
    pub(super) wakers: Vec<Waker>,
    pub(super) callbacks: Vec<Callback>,
    pub(super) alarms: Vec<timer::Key>,
}

impl Links {
    pub(super) fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Moves out all whom a signal reaches, but for the children, who stay until they are dropped.
    pub(super) fn release(&mut self, to_notify: &mut ToNotify) {
        to_notify.wakers.extend(self.caller_waker.take());
        let Some(more) = &mut self.more else {
            return;
        };
        to_notify.alarms.extend(more.alarm.take());
        to_notify.wakers.extend(more.waiters.take_all().flatten());
        to_notify.callbacks.extend(more.callbacks.take_all());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.caller_waker.is_none() && self.parents.is_none() && self.more.is_none()
    }

    /// The token is dropped: takes its alarm back, leaves its parents, and drops what is left of somebody else's, each by itself.
    pub(super) fn dispose(self) {
        let Self {
            caller_waker,
            parents,
            more,
        } = self;
        unwind::drop_catching(caller_waker);
        if let Some(mut more) = more {
            more.alarm.take().into_iter().for_each(timer::disarm);
            more.waiters.take_all().for_each(unwind::drop_catching);
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
