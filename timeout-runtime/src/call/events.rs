//! Emits the events of a call.

use std::time::{Duration, SystemTime};

use crate::context::frame;
use crate::event::clock::OwnClock;
use crate::event::{CallId, Event, EventKind, WorkerName, listener};
use crate::outcome::{Cause, Reason, TimeoutError};
use crate::terms::Terms;

impl Terms {
    /// Emits an event for the call with the number `id`, if there are listeners.
    pub(super) fn emit(
        &self,
        id: CallId,
        kind: EventKind<'_>,
        elapsed: Duration,
        worker: Option<WorkerName>,
    ) {
        let policy = self.policy();
        if !policy.has_listeners() {
            return;
        }
        frame::outside(|| {
            let timestamp = policy.clock.as_ref().and_then(OwnClock::read);
            let event = Event {
                timestamp: timestamp.unwrap_or_else(SystemTime::now),
                call: id,
                name: policy.name,
                worker,
                elapsed,
                limit: self.limit(),
                kind,
            };
            listener::tell(policy.listener.as_ref(), &event);
        });
    }

    /// Ends a call whose operation never ran: emits its event and returns its error.
    pub(super) fn not_started(&self, cause: Cause, reason: Option<Reason>) -> TimeoutError {
        let elapsed = self.elapsed();
        self.emit(self.id(), EventKind::NotStarted(cause), elapsed, None);
        self.error(cause, elapsed, false, reason)
    }
}
