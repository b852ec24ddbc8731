//! The observations made of one call of a scenario.

#![allow(unreachable_pub)] // Each test file uses its part.

use timeout_runtime::{Cause, EventKind, Failure};

use super::scenario::{Millis, OpResult};
use super::scenario_run::{Note, Reported, Returned, Sight};

/// An instant and what happened at it.
pub type At<T> = (Millis, T);

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelOutcome {
    /// The caller got the result of the operation.
    Result(OpResult),
    /// The caller got the error of the call.
    Stopped(Cause),
    NotStarted(Cause),
    Dropped,
}

/// All observations of one call.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The positions of its entry, start, operation's end, outcome and return in the order of all
    /// observations.
    pub places: [Option<usize>; 5],
    pub entered: Option<Millis>,
    pub started: Option<At<Option<Millis>>>,
    /// The instant at which its operation received the error of its token, and the position.
    pub got_error: Option<At<usize>>,
    pub ended: Option<At<OpResult>>,
    pub events: Vec<At<Reported>>,
    pub returned: Option<At<Returned>>,
    /// The cause of its token after everything has ended, if the operation started.
    pub reads: Option<Cause>,
}

impl Seen {
    pub fn of(notes: &[Note], depth: usize) -> Self {
        let mut seen = Self::default();
        let notes = notes.iter().enumerate();
        for (place, Note { at, sight, .. }) in notes.filter(|(_, note)| note.depth == depth) {
            let at = *at;
            let is_news = match sight.clone() {
                Sight::Entered => {
                    seen.places[0] = Some(place);
                    seen.entered.replace(at).is_none()
                }
                Sight::Started(left) => {
                    seen.places[1] = Some(place);
                    seen.started.replace((at, left)).is_none()
                }
                Sight::GotError => seen.got_error.replace((at, place)).is_none(),
                Sight::Ended(result) => {
                    seen.places[2] = Some(place);
                    seen.ended.replace((at, result)).is_none()
                }
                Sight::Returned(returned) => {
                    seen.places[4] = Some(place);
                    seen.returned.replace((at, returned)).is_none()
                }
                Sight::Reads(cause) => std::mem::replace(&mut seen.reads, cause).is_none(),
                Sight::Event(event) => {
                    seen.places[3].get_or_insert(place);
                    seen.events.push((at, event));
                    true
                }
            };
            assert!(is_news, "a call's {sight:?} comes once");
        }
        seen
    }

    /// The outcome in the first event.
    pub fn outcome(&self) -> Option<At<ModelOutcome>> {
        let (at, event) = self.events.first()?;
        let outcome = match &event.kind {
            EventKind::Succeeded => ModelOutcome::Result(OpResult::Ok),
            EventKind::Failed(failure) => ModelOutcome::Result(match failure {
                Failure::Panic(_) => OpResult::Panic,
                _ => OpResult::Err,
            }),
            EventKind::TimedOut => ModelOutcome::Stopped(Cause::TimedOut),
            EventKind::DeadlineExceeded => ModelOutcome::Stopped(Cause::DeadlineExceeded),
            EventKind::Cancelled => ModelOutcome::Stopped(Cause::Cancelled),
            EventKind::NotStarted(cause) => ModelOutcome::NotStarted(*cause),
            EventKind::Dropped => ModelOutcome::Dropped,
            _ => return None,
        };
        Some((*at, outcome))
    }
}
