//! Emits the events of a call.

use std::time::Duration;

use crate::context::frame;
use crate::event::clock::{OwnClock, system_time};
use crate::event::{CallId, Event, EventKind, WorkerName, listener};
use crate::outcome::{Cause, Reason, TimeoutError};
use crate::terms::Terms;
use crate::time::{Clock, Tick};

impl Terms {
    /// Emits the event of a success, which the operation returned at `at`.
    pub(super) fn emit_success(&self, at: Tick) {
        if self.policy().has_listeners() {
            let now = Some(at).filter(|_| self.clock() == Clock::Real);
            let elapsed = self.elapsed_at(at);
            self.emit_at(now, self.id(), EventKind::Succeeded, elapsed, None);
        }
    }

    /// Emits an event for the call with the number `id`, if there are listeners.
    pub(super) fn emit(
        &self,
        id: CallId,
        kind: EventKind<'_>,
        elapsed: Duration,
        worker: Option<WorkerName>,
    ) {
        self.emit_at(None, id, kind, elapsed, worker);
    }

    /// As `emit`. `now` is a reading of the real clock taken just before, if there is one.
    fn emit_at(
        &self,
        now: Option<Tick>,
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
                timestamp: timestamp
                    .unwrap_or_else(|| now.map_or_else(|| self.clock().system_time(), system_time)),
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
