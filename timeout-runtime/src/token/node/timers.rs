//! Sets the alarm that cancels a token at its deadline, once something waits for the token or is
//! linked below it. Where no timer thread can start, readers cancel the due tokens above instead.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;

use crate::sync::{Ordering, lock};
use crate::time::{Clock, Tick};

use super::super::alarm::TokenAlarm;
use super::{CLOCKED, Head, NodeRef, WATCHED};

/// Whether the timer thread was ever refused for a token.
static ANY_WITHOUT_TIMER: AtomicBool = AtomicBool::new(false);

impl Head {
    /// Cancels tokens above whose deadline has passed, where no timer does.
    pub(super) fn expire_parents(&self) {
        if ANY_WITHOUT_TIMER.load(Ordering::Relaxed) {
            for parent in self.parents() {
                parent.ensure_timers();
            }
        }
    }

    /// Whether an alarm cancels the token at `at`, and thus wakes the caller.
    pub(crate) fn wakes_caller_at(&self, at: Tick) -> bool {
        self.state.load(Ordering::Acquire) == WATCHED && self.expiry().at == at
    }
}

impl NodeRef {
    /// Makes the timer cancel the token at its deadline. Returns `false` if there is no timer
    /// thread.
    pub(crate) fn ensure_timer(&self) -> bool {
        self.ensure_timer_with(Some)
    }

    /// As `ensure_timer`. `keep` takes the alarm if one is set, and returns it if the token keeps
    /// it. It runs under the lock of the links.
    pub(in crate::token) fn ensure_timer_with(
        &self,
        keep: impl FnOnce(TokenAlarm) -> Option<TokenAlarm>,
    ) -> bool {
        let expiry = self.expiry();
        if self.state.load(Ordering::Acquire) != CLOCKED || expiry.at.is_never() {
            return true;
        }
        if !expiry.clock.has_alarms() {
            // With Tokio's paused clock, Tokio wakes the task and the task cancels its own token.
            return true;
        }
        let mut links = lock(&self.links);
        if self.state.load(Ordering::Relaxed) != CLOCKED {
            return true;
        }
        let Some(alarm) = TokenAlarm::arm(expiry.clock, expiry.at, self.downgrade()) else {
            if expiry.clock == Clock::Real {
                ANY_WITHOUT_TIMER.store(true, Ordering::Relaxed);
            }
            return false;
        };
        if let Some(alarm) = keep(alarm) {
            links.more().alarm = Some(alarm);
        }
        self.state.store(WATCHED, Ordering::Release);
        true
    }

    /// Whether readers of tokens below must check this token, because it has no timer.
    pub(super) fn is_without_timer(&self) -> bool {
        ANY_WITHOUT_TIMER.load(Ordering::Relaxed) && self.state.load(Ordering::Acquire) == CLOCKED
    }

    /// As `ensure_timer`, for this token and all above. Tokens without a timer whose deadline has
    /// passed are cancelled here.
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
