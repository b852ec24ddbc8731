//! What happens to a clock when nothing happens: an operation that blocks elsewhere is named.

use std::fmt::Write;
use std::mem;
use std::task::Waker;

use super::state::{Does, Fate, Record, State};

/// What a clock needs, on which nothing has happened for a while.
pub(super) enum Need {
    Nothing,
    /// Time moves although participants run, because `advance` says so.
    Ring,
    /// These are woken and find out that the clock is over.
    Wake(Vec<Waker>),
}

impl State {
    /// Nothing has happened for a while: decides what the clock needs.
    pub(super) fn judge(&mut self) -> Need {
        let waits =
            |record: &Record| matches!(record.does, Does::Wait | Does::Rest(_) | Does::Hold);
        if self.is_over() || !self.participants.values().any(waits) {
            return Need::Nothing;
        }
        let may_move = self.next_alarm().is_some_and(|at| at <= self.horizon());
        // Tokio's time can move further than it has moved.
        let is_in_tokio = self.is_in_tokio();
        let is_awaited = may_move || is_in_tokio && self.next_alarm().is_some();
        let is_held = self.running > 0;
        if is_held && may_move && !self.targets.is_empty() {
            for record in self.participants.values_mut() {
                if record.does == Does::Run {
                    record.does = Does::BlockElsewhere;
                }
            }
            self.running = 0;
            return Need::Ring;
        }
        let moves_by_itself = self.tests > 0 && !self.is_manual && !is_in_tokio;
        let is_dead = !is_held && !may_move && moves_by_itself;
        if is_held && is_awaited || is_dead {
            return Need::Wake(self.end(Fate::Stalled(self.report())));
        }
        Need::Nothing
    }

    /// The clock does not move any more. Returns what to wake.
    pub(super) fn end(&mut self, fate: Fate) -> Vec<Waker> {
        if self.is_over() {
            return Vec::new();
        }
        self.fate = fate;
        let alarms = mem::take(&mut self.alarms).into_values();
        let participants = self.participants.values_mut();
        let waiting = participants.filter_map(|record| record.waker.take());
        alarms.chain(waiting).collect()
    }

    /// Which participants keep the clock from moving, and which wait for it.
    fn report(&self) -> String {
        let mut report = match self.running {
            0 => "everything on the test clock waits, and no deadline is set on it:".to_owned(),
            _ => "time cannot move on the test clock, and nothing has happened on it:".to_owned(),
        };
        let runs = |record: &Record| matches!(record.does, Does::Run | Does::RunInside);
        for (is_running, text) in [(true, "blocks elsewhere"), (false, "waits")] {
            let records = self.participants.values();
            for record in records.filter(|record| runs(record) == is_running) {
                // Writing to a string does not fail.
                let _ = write!(report, "\n  {text}: {}", record.kind);
                if let Some(name) = record.thread.as_ref().and_then(|thread| thread.name()) {
                    let _ = write!(report, " on thread `{name}`");
                }
                if let Some(place) = record.place {
                    let _ = write!(report, ", last check at {place}");
                }
            }
        }
        if let Some(next) = self.next_alarm() {
            let left = next.since(self.now());
            let _ = write!(report, "\n  the next deadline passes in {left:?}");
        }
        report
    }
}
