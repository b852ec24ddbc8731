//! Polls of participants, and paused Tokio time.
//!
//! ```text
//!             poll                pending                 wake
//!   waiting ────────► running ─────────────► waiting ───────────► running (until its next poll)
//! ```
//!
//! In a Tokio runtime whose time is paused, Tokio's time drives the clock: it may move as far as
//! Tokio's time has moved. Tokio's time moves to its next timer when its runtime is idle, so
//!
//! 1. a future that becomes pending as the last one sets a timer of Tokio for the first alarm;
//! 2. a future *holds* the time while threads of the clock run: its task is woken again and again,
//!    so that the runtime is not idle.

use std::mem;
use std::task::Waker;

use crate::time::Tick;

use super::state::{Does, Key, LAST, Next, State};

/// Paused Tokio time that drives a clock.
pub(super) struct TokioTime {
    /// How many participants are polled in its runtime.
    participants: usize,
    /// The same instant on both clocks.
    start: Tick,
    start_here: Tick,
    /// The instant of this clock that Tokio's time has reached.
    pub(super) reached: Tick,
    /// The alarm to which Tokio's time moves when its runtime is idle.
    mirrored: Option<Tick>,
}

impl State {
    /// Whether paused Tokio time drives the clock.
    pub(super) fn is_in_tokio(&self) -> bool {
        self.tokio.is_some()
    }

    /// A participant is polled from now on, perhaps inside another one of this clock. `tokio` is
    /// the paused time of its runtime. Returns `false` if it was polled only so that time stands.
    pub(super) fn begin_poll(&mut self, key: Key, is_inside: bool, tokio: Option<Tick>) -> bool {
        if let Some(time) = tokio {
            self.follow(key, time);
        }
        let record = self.participants.get(&key);
        let is_due = record.is_none_or(|record| record.is_woken || record.does != Does::Hold);
        self.signs += u64::from(is_due);
        let does = if is_inside {
            Does::RunInside
        } else {
            Does::Run
        };
        self.set(key, does);
        if let Some(record) = self.participants.get_mut(&key) {
            record.is_woken = false;
        }
        is_due
    }

    /// Rings an alarm that is due in Tokio's time, before a participant is polled.
    pub(super) fn ring_due(&mut self, key: Key) -> Option<Waker> {
        let is_driven = self.tokio.is_some();
        (is_driven && self.is_last(key))
            .then(|| self.ring())
            .flatten()
    }

    /// The poll has ended without a result.
    pub(super) fn end_poll(&mut self, key: Key, waker: &Waker) -> Next {
        let Some(record) = self.participants.get(&key) else {
            return Next::Done;
        };
        let (is_in_tokio, does) = (record.is_in_tokio, record.does);
        if record.is_woken {
            self.set(key, Does::Run);
            return Next::Done;
        }
        if is_in_tokio && does == Does::Run && self.running > 1 && !self.is_over() {
            self.set(key, Does::Hold);
            return Next::Hold;
        }
        self.wait(key, waker)
    }

    /// The participant is polled in a runtime whose paused time shows `time`.
    fn follow(&mut self, key: Key, time: Tick) {
        let Some(record) = self.participants.get_mut(&key) else {
            return;
        };
        let is_new = !mem::replace(&mut record.is_in_tokio, true);
        let tokio = self.tokio.get_or_insert(TokioTime {
            participants: 0,
            start: time,
            start_here: self.now,
            reached: self.now,
            mirrored: None,
        });
        tokio.participants += usize::from(is_new);
        let here = tokio.start_here.plus(time.since(tokio.start));
        tokio.reached = tokio.reached.max(here).min(LAST);
        let reached = tokio.reached;
        if self.next_alarm().is_none_or(|at| at > reached) {
            self.now = self.now.max(reached);
        }
    }

    /// The waker of a future that makes Tokio's time move to the first alarm, if none does yet.
    pub(super) fn mirror_again(&mut self, key: Key) -> Option<Waker> {
        let next = self.next_alarm();
        let tokio = self.tokio.as_mut().filter(|tokio| tokio.mirrored != next)?;
        let record = self.participants.get(&key)?;
        if record.is_in_tokio {
            return None;
        }
        let mut in_tokio = self
            .participants
            .values()
            .filter(|record| record.is_in_tokio);
        if in_tokio.clone().any(|record| record.does != Does::Wait) {
            return None;
        }
        tokio.mirrored = next;
        in_tokio.find_map(|record| record.waker.clone())
    }

    /// The time, and the first alarm. Tokio's time moves there when its runtime is idle.
    #[cfg(feature = "tokio")]
    pub(super) fn mirrored(&mut self) -> (Tick, Option<Tick>) {
        let next = self.next_alarm();
        if let Some(tokio) = &mut self.tokio {
            tokio.mirrored = next;
        }
        (self.now, next)
    }

    /// A participant in Tokio leaves. Another one sets the timer for the first alarm.
    pub(super) fn leave_tokio(&mut self) {
        let Some(tokio) = &mut self.tokio else {
            return;
        };
        tokio.participants -= 1;
        tokio.mirrored = None;
        if tokio.participants == 0 {
            self.tokio = None;
        }
    }
}
