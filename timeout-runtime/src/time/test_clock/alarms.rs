//! [`Alarm`]: an instant at which a clock wakes something, and the order of those of one instant.

use std::sync::Arc;
use std::task::Waker;

use crate::sync::lock;
use crate::time::Tick;
use crate::unwind;

use super::VirtualClock;
use super::state::State;

/// The order of an alarm among those of the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order(u64);

impl Order {
    /// No number was taken.
    pub(crate) const NONE: Self = Self(0);

    /// This number, or the one that `next` takes if none was taken before.
    pub(crate) fn or_else(self, next: impl FnOnce() -> Self) -> Self {
        if self == Self::NONE { next() } else { self }
    }
}

/// An alarm of a virtual clock. Dropping it disarms it.
pub(crate) struct Alarm {
    pub(super) clock: Arc<VirtualClock>,
    pub(super) at: Tick,
    pub(super) order: Order,
}

impl Alarm {
    pub(crate) fn at(&self) -> Tick {
        self.at
    }

    /// Whether the alarm has not rung yet.
    pub(crate) fn is_armed(&self) -> bool {
        let mut state = lock(&self.clock.state);
        state.alarm(self.at, self.order).is_some()
    }

    /// Makes the alarm wake `waker` from now on. Returns `false` if it has rung.
    pub(crate) fn set_waker(&self, waker: &Waker) -> bool {
        let mut waker = waker.clone();
        let is_armed = match lock(&self.clock.state).alarm(self.at, self.order) {
            Some(place) => {
                std::mem::swap(place, &mut waker);
                true
            }
            None => false,
        };
        unwind::drop_catching(waker);
        is_armed
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let waker = lock(&self.clock.state).disarm(self.at, self.order);
        unwind::drop_catching(waker);
    }
}

impl State {
    pub(super) fn order(&mut self) -> Order {
        self.last_order += 1;
        Order(self.last_order)
    }

    /// Sets an alarm. Returns the waker if the clock does not move any more.
    pub(super) fn arm(&mut self, at: Tick, order: Order, waker: Waker) -> Result<(), Waker> {
        if self.is_over() {
            return Err(waker);
        }
        let before = self.alarms.insert((at, order), waker);
        debug_assert!(before.is_none(), "a number is used for one alarm at a time");
        Ok(())
    }

    pub(super) fn disarm(&mut self, at: Tick, order: Order) -> Option<Waker> {
        self.alarms.remove(&(at, order))
    }

    pub(super) fn alarm(&mut self, at: Tick, order: Order) -> Option<&mut Waker> {
        self.alarms.get_mut(&(at, order))
    }

    /// The instant of the first alarm.
    pub(super) fn next_alarm(&self) -> Option<Tick> {
        self.alarms.first_key_value().map(|(&(at, _), _)| at)
    }
}
