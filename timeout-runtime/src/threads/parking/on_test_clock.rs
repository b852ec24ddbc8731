//! Parks a thread until an instant of a test clock.

use std::task::Waker;

use crate::sync::lock;
use crate::time::Tick;
use crate::time::test_clock::{self, ClockId, Next, Order};
use crate::unwind;

use super::{Parker, State};

impl Parker {
    /// Parks until unparked, or until `until` on the test clock `id`. `waker` is that of this
    /// parker. May return early.
    ///
    /// # Panics
    ///
    /// If the clock cannot move, in code of a test.
    pub(super) fn park_on_test_clock(&self, id: ClockId, until: Tick, order: Order, waker: &Waker) {
        let here = test_clock::here().filter(|here| here.clock.id() == id);
        if let Some(here) = &here {
            here.fail_if_stalled();
        }
        let alarm = if until.is_never() {
            None
        } else {
            let Some(alarm) = id.arm(until, order, waker.clone()) else {
                return;
            };
            Some(alarm)
        };
        loop {
            let mut state = lock(&self.state);
            if !matches!(*state, State::Empty) {
                *state = State::Empty;
                break;
            }
            *state = match here.as_ref().map(|here| (here, here.wait(waker))) {
                Some((_, Next::Ring(alarm))) => {
                    drop(state);
                    unwind::contain(|| alarm.wake());
                    continue;
                }
                Some((here, Next::Done)) => State::Waiting(here.clone()),
                Some((_, Next::Over | Next::Hold)) | None => State::Parked,
            };
            while matches!(*state, State::Parked | State::Waiting(_)) {
                state = self.wakes.wait(&self.state, state, None);
            }
            *state = State::Empty;
            break;
        }
        drop(alarm);
        if let Some(here) = &here {
            here.fail_if_stalled();
        }
    }
}
