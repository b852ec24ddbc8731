//! Seeing to it that tokens fire at their deadlines, whoever looks at them.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;

use crate::deadline::Clock;
use crate::sync::{Ordering, lock};
use crate::timer::{self, Alarm};

use super::{CLOCKED, Head, NodeRef, WATCHED};

/// Whether the timer's thread could ever not be had for a token.
static ANY_WITHOUT_TIMER: AtomicBool = AtomicBool::new(false);

impl Head {
    /// Has those above fire whose time has come, where nobody else sees to that.
    pub(super) fn expire_parents(&self) {
        if ANY_WITHOUT_TIMER.load(Ordering::Relaxed) {
            for parent in self.parents() {
                parent.ensure_timers();
            }
        }
    }
}

impl NodeRef {
    /// Makes sure that the token fires at its deadline without anybody looking at it; `false` if the timer's thread cannot be had for that.
    pub(crate) fn ensure_timer(&self) -> bool {
        let own = self.terms.cancels_at();
        if self.state.load(Ordering::Acquire) != CLOCKED || own.is_never() {
            return true;
        }
        if self.terms.clock() != Clock::Real {
            // Who runs by a virtual clock is woken by that clock, and fires its token itself.
            return true;
        }
        let mut links = lock(&self.links);
        if self.state.load(Ordering::Relaxed) != CLOCKED {
            return true;
        }
        let alarm = Alarm::Fire(self.downgrade());
        let Some(key) = timer::arm(own, alarm) else {
            ANY_WITHOUT_TIMER.store(true, Ordering::Relaxed);
            return false;
        };
        links.more().alarm = Some(key);
        self.state.store(WATCHED, Ordering::Release);
        true
    }

    /// Whether a reader of a token below has to look up, because nobody attends to this one or to one above.
    pub(super) fn is_without_timer(&self) -> bool {
        ANY_WITHOUT_TIMER.load(Ordering::Relaxed) && self.state.load(Ordering::Acquire) == CLOCKED
    }

    /// As `attend`, for this token and all above it. Those that nobody attends to and whose time has come fire here.
    pub(crate) fn ensure_timers(&self) -> bool {
        if !ANY_WITHOUT_TIMER.load(Ordering::Relaxed) {
            return true;
        }
        let mut todo = vec![self.clone()];
        let mut seen = HashSet::new();
        let mut attended = true;
        while let Some(node) = todo.pop() {
            if seen.insert(node.address()) {
                attended &= node.ensure_timer() || node.cause_by_itself().is_some();
                todo.extend(node.parents());
            }
        }
        attended
    }
}
