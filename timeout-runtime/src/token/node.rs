//! The node behind a token: its state and its links. `attend.rs` has who sees to a deadline, `spread.rs` how a signal travels.
//!
//! ```text
//!            settle              attend
//!   plain ◄───────── watched ◄────────── clocked        live: without deadline, with one that somebody watches,
//!     │                 │                   │            with one that only readers look at
//!     └───────── fire ──┴────── fire ───────┘
//!                        ▼
//!               fired, with its cause                    for good
//! ```
//!
//! 1. The state changes under the lock of `links`, and is read without it: a reader is never held up by a canceller.
//! 2. *Register, then look*: whoever adds himself to a node's links looks at its state under that lock or after it, and `fire`
//!    sets the state before it takes the waiting ones out under the same lock. So a signal is never missed, and never comes twice.
//! 3. A node holds its parents, a parent knows its children weakly. A child unlinks itself when it is dropped.
//! 4. Firing walks the tree with a work list: first every node below reads fired, then wakers are woken, then callbacks run. A
//!    second one who fires meanwhile walks as well, with the cause of the first, so it holds for him too.
//!    Dropping a chain goes through a list of the thread's own. Neither recurses.
//! 5. Lock order: a node's links, then the timer's state. Never two nodes' links at once, and no user code under either.

use std::collections::HashSet;
use std::ops::Deref;
use std::ptr;
use std::sync::{Arc, Weak};

use crate::call::cell::CallCell;
use crate::deadline::{Clock, Deadline};
use crate::error::{Cause, Reason, TimeoutError};
use crate::sync::{AtomicU8, Lock, Mutex, Ordering, lock};
use crate::terms::Terms;
use crate::tick::Tick;
use crate::timer;
use crate::unwind;

use super::links::Links;
use super::parents::{Link, Parents};

mod propagate;
mod timers;
mod waiting;

use propagate::Trigger;

const PLAIN: u8 = 0;
const WATCHED: u8 = 1;
const CLOCKED: u8 = 2;
const CANCELLED: u8 = 3;

/// The causes a token can have, in the order of their codes from `CANCELLED` on.
const CAUSES: [Cause; 3] = [Cause::TimedOut, Cause::DeadlineExceeded, Cause::Cancelled];

fn code(cause: Cause) -> u8 {
    match cause {
        Cause::TimedOut => CANCELLED,
        Cause::DeadlineExceeded => CANCELLED + 1,
        _ => CANCELLED + 2,
    }
}

fn cause_of(state: u8) -> Option<Cause> {
    CAUSES
        .get(usize::from(state.checked_sub(CANCELLED)?))
        .copied()
}

/// Who looks out for a token's deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Somebody fires the token when the time has come.
    Watched,
    /// Nobody: readers look at the clock.
    Clocked,
}

/// One token, or one call together with its token.
pub(crate) struct Node<C: ?Sized> {
    pub(crate) head: Head,
    pub(crate) cargo: C,
}

/// All of a token but its cargo. What is done to it is compiled once, and not for each operation.
pub(crate) struct Head {
    state: AtomicU8,
    /// Set once every token below reads fired.
    reached: AtomicU8,
    terms: Terms,
    links: Mutex<Links>,
}

impl<C: ?Sized> Deref for Node<C> {
    type Target = Head;

    #[inline]
    fn deref(&self) -> &Head {
        &self.head
    }
}

/// A shared node: a token's of its own, or that of a call whose operation runs apart from its caller. Of the first kind the state is at a fixed
/// distance; behind the second, that depends on the operation's alignment, which has to be looked up first.
#[derive(Clone)]
pub(crate) enum NodeRef {
    Token(Arc<Node<()>>),
    Call(Arc<Node<CallCell>>),
}

/// As `NodeRef`, without keeping the node.
#[derive(Clone)]
pub(crate) enum NodeWeak {
    Token(Weak<Node<()>>),
    Call(Weak<Node<CallCell>>),
}

impl NodeWeak {
    pub(crate) fn upgrade(&self) -> Option<NodeRef> {
        match self {
            Self::Token(node) => node.upgrade().map(NodeRef::Token),
            Self::Call(node) => node.upgrade().map(NodeRef::Call),
        }
    }
}

impl Deref for NodeRef {
    type Target = Head;

    #[inline]
    fn deref(&self) -> &Head {
        match self {
            Self::Token(node) => node,
            Self::Call(node) => node,
        }
    }
}

impl Head {
    pub(crate) fn new(terms: Terms, watch: Watch) -> Self {
        let state = match watch {
            _ if terms.cancels_at().is_never() => PLAIN,
            Watch::Watched => WATCHED,
            Watch::Clocked => CLOCKED,
        };
        Self {
            state: AtomicU8::new(state),
            reached: AtomicU8::new(0),
            terms,
            links: Mutex::new(Links::default()),
        }
    }
}

impl NodeRef {
    /// A token below `parents`, fired already if one of them is.
    #[inline]
    pub(crate) fn new(terms: Terms, watch: Watch, parents: &[Self]) -> Self {
        let head = Head::new(terms, watch);
        let node = Self::Token(Arc::new(Node { head, cargo: () }));
        if !parents.is_empty() {
            node.link(parents);
        }
        node
    }

    pub(crate) fn downgrade(&self) -> NodeWeak {
        match self {
            Self::Token(node) => NodeWeak::Token(Arc::downgrade(node)),
            Self::Call(node) => NodeWeak::Call(Arc::downgrade(node)),
        }
    }

    /// The call that this token was given out ahead of has begun, and `call` is its node: from here on the token hears all that the call
    /// does.
    pub(crate) fn begin(&self, call: &Self) {
        self.terms.begin(&call.terms);
        self.link(std::slice::from_ref(call));
    }

    /// Adds a child; it is not reached by a signal that has come before.
    fn add_child(&self, child: NodeWeak) -> u64 {
        self.ensure_timer();
        let mut links = lock(&self.links);
        if self.known_cause().is_some() {
            return u64::MAX;
        }
        links.more().children.insert(child)
    }

    /// Links the node below `parents`; done once.
    pub(crate) fn link(&self, parents: &[Self]) {
        if parents.is_empty() {
            return;
        }
        let link = |parent: &Self| Link {
            key: parent.add_child(self.downgrade()),
            parent: parent.clone(),
        };
        let parents_links = match parents {
            [one] => Parents::One(link(one)),
            many => Parents::Many(many.iter().map(link).collect()),
        };
        let mut links = lock(&self.links);
        links.parents = Some(Box::new(parents_links));
        if self.state.load(Ordering::Relaxed) == PLAIN && parents.iter().any(Self::is_without_timer)
        {
            self.state.store(CLOCKED, Ordering::Release);
        }
        drop(links);
        // Linked, now look: a parent that fired before could not reach the child, one that fires from here on can.
        if let Some((cause, reason)) = parents.iter().find_map(|parent| parent.cancellation()) {
            let callbacks = self.send(Trigger::Earlier(self.cause_from_parent(cause), reason));
            propagate::run_callbacks(callbacks);
        }
    }
}

impl Head {
    /// The node of the call that this token was given out ahead of, once that has begun.
    fn call(&self) -> Option<NodeRef> {
        match self.terms {
            Terms::Ahead(_) => self.first_parent(),
            _ => None,
        }
    }

    fn first_parent(&self) -> Option<NodeRef> {
        let links = lock(&self.links);
        let first = links.parents.as_ref()?.as_slice().first()?;
        Some(first.parent.clone())
    }

    /// Why the token has fired, if it has. One atomic load, and a clock reading where nobody watches the deadline.
    #[inline]
    pub(crate) fn cause(&self) -> Option<Cause> {
        if self.is_live() {
            return None;
        }
        self.cause_by_now()
    }

    /// Whether it has not fired, and somebody watches its deadline.
    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), PLAIN | WATCHED)
    }

    fn cause_by_now(&self) -> Option<Cause> {
        self.cause_by_itself().or_else(|| {
            self.expire_parents();
            self.known_cause()
        })
    }

    /// As `fired`, without a look at those above.
    fn cause_by_itself(&self) -> Option<Cause> {
        if self.known_cause().is_none() && self.terms.is_due() {
            self.expire();
        }
        self.known_cause()
    }

    /// As `fired`, without a look at the clock.
    fn known_cause(&self) -> Option<Cause> {
        cause_of(self.state.load(Ordering::Acquire))
    }

    /// Why the token has fired, and the reason given.
    pub(crate) fn cancellation(&self) -> Option<(Cause, Option<Reason>)> {
        let cause = self.cause()?;
        let links = lock(&self.links);
        let reason = links.more.as_ref().and_then(|more| more.reason.clone());
        Some((cause, reason))
    }

    /// As `signal`; `None` if the deadline of the token's call had passed before, and did not cancel it.
    pub(crate) fn cancellation_before_deadline(&self) -> Option<(Cause, Option<Reason>)> {
        let cancellation = self.cancellation()?;
        let links = lock(&self.links);
        let is_late = links.more.as_ref().is_some_and(|more| more.after_deadline);
        (!is_late).then_some(cancellation)
    }

    /// The error that speaks for this token, if it has fired.
    pub(crate) fn error(&self) -> Option<TimeoutError> {
        let (cause, reason) = self.cancellation()?;
        Some(self.with_call_terms(|terms| terms.error(cause, terms.elapsed(), true, reason)))
    }

    /// With the terms of the call that this token belongs to; one that is linked below another speaks for the same call as that.
    pub(crate) fn with_call_terms<T>(&self, say: impl FnOnce(&Terms) -> T) -> T {
        if !matches!(self.terms, Terms::None) {
            return say(&self.terms);
        }
        let mut above = self.first_parent();
        while let Some(node) = &above {
            if !matches!(node.terms, Terms::None) {
                return say(&node.terms);
            }
            above = node.first_parent();
        }
        say(&Terms::None)
    }

    /// What tells this node from all others.
    pub(crate) fn address(&self) -> *const Self {
        ptr::from_ref(self)
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The call has ended in time: its own deadline and its caller are forgotten, what lies above still reaches the token.
    pub(crate) fn disarm(&self) {
        let mut links = lock(&self.links);
        if self.known_cause().is_none() {
            self.state.store(PLAIN, Ordering::Release);
        }
        let caller_waker = links.caller_waker.take();
        let alarm = links.more.as_mut().and_then(|more| more.alarm.take());
        drop(links);
        unwind::drop_catching(caller_waker);
        if let Some(key) = alarm {
            timer::disarm(key);
        }
        if let Some(call) = self.call() {
            call.disarm();
        }
    }

    /// The nearest deadline of this token and all above it.
    pub(crate) fn deadline(&self) -> Deadline {
        let mut nearest = self.own_deadline();
        if self.has_nearest_deadline() {
            return nearest;
        }
        let mut todo = self.parents();
        // Above a token with several parents lines may meet again.
        let mut seen = HashSet::new();
        while let Some(node) = todo.pop() {
            let is_news = todo.is_empty() || seen.insert(node.address());
            if is_news {
                nearest = nearest.min(node.own_deadline());
                if !node.has_nearest_deadline() {
                    todo.extend(node.parents());
                }
            }
        }
        nearest
    }

    /// Whether no deadline above can be nearer: a call has taken the nearest of all above it for its own, and those are at most
    /// forgotten.
    fn has_nearest_deadline(&self) -> bool {
        let is_live = self.state.load(Ordering::Acquire) != PLAIN;
        is_live && self.terms.is_call() && self.terms.cancels_at_deadline() && self.call().is_none()
    }

    fn parents(&self) -> Vec<NodeRef> {
        let links = lock(&self.links);
        let parents = links.parents.as_ref().map_or(&[][..], |all| all.as_slice());
        parents.iter().map(|link| link.parent.clone()).collect()
    }

    /// When a reader fires the token, if none but readers do.
    pub(crate) fn unwatched_deadline(&self) -> Tick {
        match self.state.load(Ordering::Acquire) {
            CLOCKED => self
                .terms
                .clock()
                .cross(Clock::Real, self.terms.cancels_at()),
            _ => Tick::NEVER,
        }
    }

    /// As `Terms::caller_end`, as long as the call has not ended in time.
    pub(crate) fn caller_end(&self) -> Option<Deadline> {
        if let Some(call) = self.call() {
            return call.caller_end();
        }
        match self.state.load(Ordering::Acquire) {
            PLAIN => None,
            _ => self.terms.caller_end(),
        }
    }

    fn own_deadline(&self) -> Deadline {
        match self.state.load(Ordering::Acquire) {
            PLAIN => Deadline::never(),
            _ => Deadline::on(self.terms.clock(), self.terms.cancels_at()),
        }
    }

    /// How many tokens are linked below this one.
    #[cfg(test)]
    pub(crate) fn children(&self) -> usize {
        lock(&self.links)
            .more
            .as_ref()
            .map_or(0, |more| more.children.len())
    }
}

impl Drop for Head {
    #[inline]
    fn drop(&mut self) {
        let left = std::mem::take(self.links.inside());
        if !left.is_empty() {
            left.dispose();
        }
    }
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests;

#[cfg(all(test, timeout_loom))]
mod models;
