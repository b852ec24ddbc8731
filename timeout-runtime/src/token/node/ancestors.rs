//! Reads what a token inherits from the tokens above it: its deadline, and the call it belongs to.

use std::collections::HashSet;

use crate::outcome::TimeoutError;
use crate::sync::{Ordering, lock};
use crate::terms::Terms;
use crate::time::Deadline;

use super::super::owner::Owner;
use super::{Head, NodeRef, PLAIN};

impl Head {
    /// The node of the call that this token was created for, once that call has begun.
    pub(super) fn call(&self) -> Option<NodeRef> {
        match self.owner {
            Owner::Later(_) => self.first_parent(),
            Owner::None | Owner::Context(_) | Owner::Call(_) => None,
        }
    }

    fn first_parent(&self) -> Option<NodeRef> {
        let links = lock(&self.links);
        let first = links.parents.as_ref()?.as_slice().first()?;
        Some(first.parent.clone())
    }

    /// The error of this token for an operation, if the token is cancelled.
    pub(crate) fn error(&self) -> Option<TimeoutError> {
        let (cause, reason) = self.cancellation()?;
        self.note_error();
        Some(self.with_owner(|owner| owner.error(cause, reason)))
    }

    /// Notes that an operation gets the error of this token, and so that of each cancelled token
    /// above. A token that is not cancelled notes nothing.
    pub(crate) fn note_error(&self) {
        self.note_error_above();
        self.note_own_error();
    }

    /// As `note_error`, without this token.
    pub(crate) fn note_error_above(&self) {
        self.each_above(|node| {
            node.note_own_error();
            true
        });
    }

    fn note_own_error(&self) {
        // A nested call can end at an inherited deadline before that deadline cancels this token.
        let is_due =
            self.state.load(Ordering::Acquire) != PLAIN && self.expiry().cause_if_due().is_some();
        if is_due || self.known_cause().is_some() {
            self.gave_error.store(1, Ordering::Relaxed);
        }
    }

    /// Whether an operation has received the error of this token.
    pub(crate) fn has_given_error(&self) -> bool {
        self.gave_error.load(Ordering::Relaxed) != 0
    }

    /// The name of the call that this token belongs to.
    pub(crate) fn name(&self) -> &'static str {
        self.with_owner(Owner::name)
    }

    /// Calls `f` with the call that this token belongs to. A token below another one belongs to the
    /// same call.
    fn with_owner<T>(&self, f: impl FnOnce(&Owner) -> T) -> T {
        if !self.owner.is_none() {
            return f(&self.owner);
        }
        let mut above = self.first_parent();
        while let Some(node) = &above {
            if !node.owner.is_none() {
                return f(&node.owner);
            }
            above = node.first_parent();
        }
        f(&Owner::None)
    }

    /// The nearest deadline of this token and all tokens above it.
    pub(crate) fn deadline(&self) -> Deadline {
        let mut nearest = self.own_deadline();
        if !self.has_nearest_deadline() {
            self.each_above(|node| {
                nearest = nearest.min(node.own_deadline());
                !node.has_nearest_deadline()
            });
        }
        nearest
    }

    /// Calls `visit` with each token above this one, once. `visit` tells whether to continue above
    /// that token.
    fn each_above(&self, mut visit: impl FnMut(&Head) -> bool) {
        let mut todo = self.parents();
        // Above a token with several parents, paths may meet again.
        let mut seen = HashSet::new();
        while let Some(node) = todo.pop() {
            let is_news = todo.is_empty() || seen.insert(node.address());
            if is_news && visit(&node) {
                todo.extend(node.parents());
            }
        }
    }

    /// Whether no deadline above can be nearer. A call has taken the nearest deadline above as its
    /// own, and deadlines above are removed but never moved forward.
    fn has_nearest_deadline(&self) -> bool {
        let is_live = self.state.load(Ordering::Acquire) != PLAIN;
        let is_call = matches!(&self.owner, Owner::Call(terms) if terms.cancels_at_deadline());
        is_live && is_call
    }

    pub(super) fn parents(&self) -> Vec<NodeRef> {
        let links = lock(&self.links);
        let parents = links.parents.as_ref().map_or(&[][..], |all| all.as_slice());
        parents.iter().map(|link| link.parent.clone()).collect()
    }

    /// As `Terms::caller_end`, until the call has ended in time.
    pub(crate) fn caller_end(&self) -> Option<Deadline> {
        if let Some(call) = self.call() {
            return call.caller_end();
        }
        match self.state.load(Ordering::Acquire) {
            PLAIN => None,
            _ => self.terms().and_then(Terms::caller_end),
        }
    }

    fn own_deadline(&self) -> Deadline {
        match self.state.load(Ordering::Acquire) {
            PLAIN => Deadline::never(),
            _ => self.expiry().deadline(),
        }
    }
}

#[cfg(feature = "test-util")]
impl NodeRef {
    /// The outermost call that this token is below, without the token at the address `around` and
    /// those above it. The token itself if there is none.
    pub(crate) fn outermost_call(&self, around: usize) -> Self {
        let mut outermost = self.clone();
        let mut todo = vec![self.clone()];
        let mut seen = HashSet::new();
        while let Some(node) = todo.pop() {
            if node.address().addr() == around || !seen.insert(node.address()) {
                continue;
            }
            todo.extend(node.parents());
            if node.terms().is_some() {
                outermost = node;
            }
        }
        outermost
    }
}
