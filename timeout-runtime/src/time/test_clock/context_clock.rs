//! [`ContextClock`]: the clock that a context passes on to other threads and tasks.

use std::panic::Location;
use std::sync::Arc;

use super::{ClockId, Kind, OnClock, Participant, PolledParticipant, VirtualClock, current_clock};

/// The clock on which code in a context runs; none if the context does not change it.
#[derive(Clone, Copy)]
pub(crate) struct ContextClock(Option<ClockId>);

impl ContextClock {
    /// The clock of this thread.
    pub(crate) fn here() -> Self {
        Self(current_clock())
    }

    /// Makes this thread run on the clock until the returned value is dropped.
    pub(crate) fn enter(self, place: &'static Location<'static>) -> Option<Inside> {
        let clock = self
            .0
            .filter(|clock| current_clock() != Some(*clock))?
            .get()?;
        Some(Inside::enter(&clock, Kind::Context(place)))
    }

    /// Code in the context that is polled.
    pub(crate) fn polled(self, place: &'static Location<'static>) -> Option<PolledParticipant> {
        let clock = self.0?.get()?;
        Some(PolledParticipant::join(&clock, Kind::Context(place)))
    }
}

/// A thread that runs on a clock.
pub(crate) struct Inside {
    // Dropped first.
    _on_clock: OnClock,
    _participant: Participant,
}

impl Inside {
    /// Makes this thread a participant of `clock`.
    pub(crate) fn enter(clock: &Arc<VirtualClock>, kind: Kind) -> Self {
        let participant = Participant::join(clock, kind);
        Self {
            _on_clock: participant.enter(),
            _participant: participant,
        }
    }
}
