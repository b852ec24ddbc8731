//! Seeing to it that tokens fire at their deadlines, whoever looks at them.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;

use crate::deadline::Clock;
use crate::sync::{Ordering, lock};
use crate::timer::{self, Alarm};

use super::{CLOCKED, NodeRef, WATCHED};

/// Whether the timer's thread could ever not be had for a token.
static ANY_UNATTENDED: AtomicBool = AtomicBool::new(false);

impl NodeRef {
    /// Makes sure that the token fires at its deadline without anybody looking at it; `false` if the timer's thread cannot be had for that.
    pub(crate) fn attend(&self) -> bool {
        if self.state.load(Ordering::Acquire) != CLOCKED || self.terms.clock() != Clock::Real {
            // Who runs by a virtual clock is woken by that clock, and fires its token itself.
            return true;
        }
        let mut links = lock(&self.links);
        if self.state.load(Ordering::Relaxed) != CLOCKED {
            return true;
        }
        let alarm = Alarm::Fire(self.downgrade());
        let Some(key) = timer::arm(self.terms.signal(), alarm) else {
            ANY_UNATTENDED.store(true, Ordering::Relaxed);
            return false;
        };
        links.more().alarm = Some(key);
        self.state.store(WATCHED, Ordering::Release);
        true
    }

    /// As `attend`, for this token and all above it. Those that nobody attends to and whose time has come fire here.
    pub(crate) fn attend_all(&self) -> bool {
        if !ANY_UNATTENDED.load(Ordering::Relaxed) {
            return true;
        }
        let mut todo = vec![self.clone()];
        let mut seen = HashSet::new();
        let mut attended = true;
        while let Some(node) = todo.pop() {
            if seen.insert(node.address()) {
                attended &= node.attend() || node.fired().is_some();
                todo.extend(node.parents());
            }
        }
        attended
    }
}
