//! The parents of a token, and how a long chain of tokens is dropped without recursion.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

use crate::sync::const_thread_local;
use crate::unwind;

use super::node::NodeRef;

/// A parent, and the key of the child in the parent's links.
pub(super) struct Link {
    pub(super) parent: NodeRef,
    pub(super) key: u64,
}

/// The parents of a token, mostly one.
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

/// Parents that this thread still has to drop: a list replaces a recursion.
struct LettingGo {
    active: Cell<bool>,
    // Without a destructor: destructors of other thread-locals may drop tokens.
    list: ManuallyDrop<RefCell<Vec<Parents>>>,
}

const_thread_local! {
    static LETTING_GO: LettingGo = LettingGo {
        active: Cell::new(false),
        list: ManuallyDrop::new(RefCell::new(Vec::new())),
    };
}

impl LettingGo {
    /// Drops `parents`, or adds them to the list if this thread is already dropping some.
    ///
    /// Dropping the last child of a parent drops that parent, and so on. Each parent is put into
    /// the list, not into the next stack frame.
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

/// Drops the parents of a dropped node, which is unlinked from them already.
pub(super) fn let_go(parents: Parents) {
    LETTING_GO.with(|going| going.add(parents));
}
