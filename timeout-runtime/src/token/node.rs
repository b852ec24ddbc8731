//! [`Node`]: the state of one token and its links to other tokens.
//!
//! ```text
//!            disarm            ensure_timer
//!   plain ◄───────── watched ◄────────────── clocked     plain: without a deadline of its own
//!     │ │               │                     ▲ │        watched: a timer or the caller cancels
//!     │ └───────────────┼─ parent unwatched ──┘ │                 it at its deadline
//!     │ ▲───────────────┼────── disarm ─────────┤        clocked: each reader compares the
//!     └──────── cancel ─┴──────── cancel ───────┘                 deadline with the clock
//!                       ▼
//!              cancelled, with its cause                 final
//! ```
//!
//! 1. The state changes under the lock of `links` and is read without it, so `cancel` never blocks
//!    a reader.
//! 2. *Register, then read.* A waiter is added to the links first, and reads the state under the
//!    same lock or later. `cancel` sets the state before it takes the waiters out under that lock.
//!    So a cancellation is never missed and never delivered twice.
//! 3. A node holds its parents strongly; a parent holds its children weakly. A dropped child
//!    unlinks itself.
//! 4. A cancellation walks the tree with a work list. First it cancels all nodes below, then it
//!    unparks the threads that park in a wait of ours, then it hands the callbacks over, and then
//!    it wakes the other waiters, which may block. A concurrent second cancellation walks the tree
//!    too, with the first cause, and wakes the waiters that are left. So all nodes below are
//!    cancelled when either of them returns. Dropping a chain uses a thread-local list. So neither
//!    cancelling nor dropping recurses.
//! 5. Lock order: the links of one node, then the state of the timer. Never the links of two nodes,
//!    and no code of users under either lock.
//!
//! `timers.rs` makes the timer cancel a token at its deadline, `propagate.rs` cancels the
//! tokens below, `ancestors.rs` reads the tokens above, and `waiting.rs` registers waiters.

use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr;
use std::sync::{Arc, Weak};

use crate::outcome::{Cause, Reason};
use crate::sync::{AtomicU8, Lock, Mutex, Ordering, lock, one_per_process};
use crate::terms::Terms;
use crate::time::{Clock, Deadline, Tick};
use crate::timer::{Fire, Timer};
use crate::unwind;

use super::expiry::Expiry;
use super::links::Links;
use super::owner::Owner;
use super::parents::{Link, Parents};

mod ancestors;
mod propagate;
mod timers;
mod waiting;

use propagate::Trigger;

const PLAIN: u8 = 0;
const WATCHED: u8 = 1;
const CLOCKED: u8 = 2;
const CANCELLED: u8 = 3;

/// The causes of a cancellation, in the order of their codes from `CANCELLED` on.
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

/// What cancels a token at its deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// A timer or the caller.
    Watched,
    /// Readers, which compare the deadline with the clock.
    Clocked,
}

/// One token, or one call together with its token.
pub(crate) struct Node<C: ?Sized> {
    pub(crate) head: Head,
    pub(crate) cargo: C,
}

/// A node without its cargo. Its methods are compiled once, not once for each operation.
pub(crate) struct Head {
    state: AtomicU8,
    /// Set once all tokens below are cancelled and their waiters are woken.
    reached: AtomicU8,
    /// Set once an operation has received the error of this token.
    gave_error: AtomicU8,
    owner: Owner,
    links: Mutex<Links>,
}

impl<C: ?Sized> Deref for Node<C> {
    type Target = Head;

    #[inline]
    fn deref(&self) -> &Head {
        &self.head
    }
}

/// What a call stores beside its token. The token never reads it.
type Cargo = dyn Send + Sync;

/// A shared node: that of a token alone, or that of a call whose operation runs elsewhere. The
/// state of the first is at a fixed offset; the offset of the second depends on the alignment of
/// the cargo, which takes one more load.
#[derive(Clone)]
pub(crate) enum NodeRef {
    Token(Arc<Node<()>>),
    Call(Arc<Node<Cargo>>),
}

/// As `NodeRef`, without keeping the node alive.
#[derive(Clone)]
pub(crate) enum NodeWeak {
    Token(Weak<Node<()>>),
    Call(Weak<Node<Cargo>>),
}

// A panic leaves no node half changed: all code of users runs outside its lock.
impl UnwindSafe for NodeRef {}
impl RefUnwindSafe for NodeRef {}
impl UnwindSafe for NodeWeak {}
impl RefUnwindSafe for NodeWeak {}

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

one_per_process! {
    /// Cancels tokens and wakes tasks at their deadlines.
    pub(crate) static TIMER: Timer<NodeWeak> = Timer::new();
}

impl Fire for NodeWeak {
    fn fire(self) {
        if let Some(node) = self.upgrade() {
            node.expire();
        }
    }
}

impl Head {
    pub(crate) fn new(owner: Owner, watch: Watch) -> Self {
        let state = match watch {
            _ if owner.expiry().at.is_never() => PLAIN,
            Watch::Watched => WATCHED,
            Watch::Clocked => CLOCKED,
        };
        Self {
            state: AtomicU8::new(state),
            reached: AtomicU8::new(0),
            gave_error: AtomicU8::new(0),
            owner,
            links: Mutex::new(Links::default()),
        }
    }
}

impl NodeRef {
    /// A token below `parents`, cancelled already if one of them is.
    #[inline]
    pub(crate) fn new(owner: Owner, watch: Watch, parents: &[Self]) -> Self {
        let head = Head::new(owner, watch);
        let node = Self::Token(Arc::new(Node { head, cargo: () }));
        if !parents.is_empty() {
            node.link(parents);
        }
        // On a test clock, the alarms of limits ring in the order in which their calls started.
        if node.expiry().clock.is_for_tests() {
            node.ensure_timer();
        }
        node
    }

    /// As `disarm`, unless nothing else can read this token.
    pub(crate) fn disarm_if_shared(&self) {
        let owners = match self {
            Self::Token(node) => Arc::strong_count(node),
            Self::Call(node) => Arc::strong_count(node),
        };
        if owners > 1 {
            self.disarm();
        }
    }

    /// A token that is cancelled at `deadline`.
    pub(crate) fn of_deadline(deadline: Deadline) -> Self {
        Self::new(Owner::context(deadline), Watch::Clocked, &[])
    }

    pub(crate) fn downgrade(&self) -> NodeWeak {
        match self {
            Self::Token(node) => NodeWeak::Token(Arc::downgrade(node)),
            Self::Call(node) => NodeWeak::Call(Arc::downgrade(node)),
        }
    }

    /// Links this token, which was created before its call, below the node of the call that has
    /// begun now.
    pub(crate) fn begin(&self, call: &Self) {
        if let Some(terms) = call.terms() {
            self.owner.begin(terms);
        }
        self.link(std::slice::from_ref(call));
    }

    /// Adds a child. A cancellation that came before does not reach it.
    fn add_child(&self, child: NodeWeak) -> u64 {
        self.ensure_timer();
        let mut links = lock(&self.links);
        if self.known_cause().is_some() {
            return u64::MAX;
        }
        links.more().children.insert(child)
    }

    /// Links the node below `parents`. Called once.
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
        // Read after linking: a parent cancelled before could not reach this child, any later one
        // can.
        if let Some((cause, reason)) = parents.iter().find_map(|parent| parent.cancellation()) {
            self.send(Trigger::Earlier(self.cause_from_parent(cause), reason));
        }
    }
}

impl Head {
    /// The cause, if the token is cancelled. One atomic load, and a clock reading while `clocked`.
    #[inline]
    pub(crate) fn cause(&self) -> Option<Cause> {
        if self.is_live() {
            return None;
        }
        self.cause_by_now()
    }

    /// Whether the token is not cancelled and something else watches its deadline.
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

    /// As `cause`, without regard to the parents.
    fn cause_by_itself(&self) -> Option<Cause> {
        if self.known_cause().is_none() && self.expiry().cause_if_due().is_some() {
            self.expire();
        }
        self.known_cause()
    }

    /// As `cause`, without a clock reading.
    fn known_cause(&self) -> Option<Cause> {
        cause_of(self.state.load(Ordering::Acquire))
    }

    /// The cause and its reason, if the token is cancelled.
    pub(crate) fn cancellation(&self) -> Option<(Cause, Option<Reason>)> {
        let cause = self.cause()?;
        let links = lock(&self.links);
        let reason = links.more.as_ref().and_then(|more| more.reason.clone());
        Some((cause, reason))
    }

    /// As `cancellation`; `None` if the deadline of the call had passed before and did not cancel
    /// the token.
    pub(crate) fn cancellation_before_deadline(&self) -> Option<(Cause, Option<Reason>)> {
        let cancellation = self.cancellation()?;
        let links = lock(&self.links);
        let is_late = links.more.as_ref().is_some_and(|more| more.after_deadline);
        (!is_late).then_some(cancellation)
    }

    /// Identifies this node among all others.
    pub(crate) fn address(&self) -> *const Self {
        ptr::from_ref(self)
    }

    /// The terms of the call that this is the token of, once the call has started.
    pub(crate) fn terms(&self) -> Option<&Terms> {
        self.owner.terms()
    }

    /// When time cancels the token, without regard to the parents.
    pub(crate) fn expiry(&self) -> Expiry {
        self.owner.expiry()
    }

    /// The call has ended in time: removes its deadline and its caller's waker. Tokens above still
    /// cancel this one.
    pub(crate) fn disarm(&self) {
        let mut links = lock(&self.links);
        if self.known_cause().is_none() {
            self.state.store(PLAIN, Ordering::Release);
        }
        let caller_waker = links.caller_waker.take();
        let alarm = links.more.as_mut().and_then(|more| more.alarm.take());
        drop(links);
        unwind::drop_catching(caller_waker);
        if let Some(alarm) = alarm {
            alarm.disarm();
        }
        if let Some(call) = self.call() {
            call.disarm();
        }
    }

    /// When a reader must cancel the token, on the reader's `clock`, if only readers do.
    pub(crate) fn unwatched_deadline(&self, clock: Clock) -> Tick {
        match self.state.load(Ordering::Acquire) {
            CLOCKED => self.expiry().deadline().inherited_on(clock),
            _ => Tick::NEVER,
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
            left.release_all();
        }
    }
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests;

#[cfg(all(test, timeout_loom))]
mod models;
