//! What a token hangs on, and how a long chain of tokens is let go.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

use crate::sync::const_thread_local;
use crate::unwind;

use super::node::NodeRef;

/// A parent, and the child's place in its links.
pub(super) struct Link {
    pub(super) parent: NodeRef,
    pub(super) key: u64,
}

/// What a token hangs on: one parent, as a rule.
pub(super) enum Parents {
    One(Link),
    Many(Box<[Link]>),
}

impl Parents {
    pub(super) fn as_slice(&self) -> &[Link] {
        match self {
            Self::One(link) => std::slice::from_ref(link),
            Self::Many(links) => links,
        }
    }
}

/// Parents that a thread is about to let go of, while it is letting go of a child.
struct LettingGo {
    active: Cell<bool>,
    // Without a destructor, so that it outlives every other thread-local, whose destructors may let go of tokens.
    list: ManuallyDrop<RefCell<Vec<Parents>>>,
}

const_thread_local! {
    static LETTING_GO: LettingGo = LettingGo {
        active: Cell::new(false),
        list: ManuallyDrop::new(RefCell::new(Vec::new())),
    };
}

impl LettingGo {
    /// The last child of a parent drops that parent, and so on up: each goes into the list, not into the next stack frame.
    fn add(&self, parents: Parents) {
        if self.active.replace(true) {
            self.list.borrow_mut().push(parents);
            return;
        }
        unwind::drop_catching(parents);
        while let Some(parents) = self.pop() {
            unwind::drop_catching(parents);
        }
        drop(self.list.take());
        self.active.set(false);
    }

    fn pop(&self) -> Option<Parents> {
        self.list.borrow_mut().pop()
    }
}

/// Lets go of a dropped node's parents, after it has left their links.
pub(super) fn let_go(parents: Parents) {
    LETTING_GO.with(|going| going.add(parents));
}
