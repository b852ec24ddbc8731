//! What a token hangs on, and how a long chain of tokens is let go.

use std::cell::{Cell, RefCell};

use crate::sync::thread_local;
use crate::unwind;

use super::node::NodeRef;

/// A parent, and the child's place in its links.
pub(super) struct Link {
    pub(super) parent: NodeRef,
    pub(super) key: usize,
}

/// Parents that a thread is about to let go of, while it is letting go of a child.
#[derive(Default)]
struct LettingGo {
    active: Cell<bool>,
    list: RefCell<Vec<Vec<Link>>>,
}

thread_local! {
    static LETTING_GO: LettingGo = LettingGo::default();
}

impl LettingGo {
    /// The last child of a parent drops that parent, and so on up: each goes into the list, not into the next stack frame.
    fn add(&self, links: Vec<Link>) {
        self.list.borrow_mut().push(links);
        if self.active.replace(true) {
            return;
        }
        while let Some(links) = self.pop() {
            unwind::dispose(links);
        }
        self.active.set(false);
    }

    fn pop(&self) -> Option<Vec<Link>> {
        self.list.borrow_mut().pop()
    }
}

/// Lets go of a dropped node's parents, after it has left their links.
pub(super) fn let_go(links: Vec<Link>) {
    if links.is_empty() {
        return;
    }
    let mut links = Some(links);
    // Once the thread's storage is gone the links are dropped here, where `links` is.
    let _ = LETTING_GO.try_with(|going| links.take().map(|links| going.add(links)));
}
