//! The timestamps of events: from [`OwnClock`], a policy's own function, or the system time.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::registry::Entry;
use crate::sync::const_thread_local;
use crate::time::Tick;

/// The function that returns the timestamp of an event.
type Now = dyn Fn() -> SystemTime + Send + Sync;

/// A policy's own clock.
#[derive(Clone)]
pub(crate) struct OwnClock(Entry<Now>);

impl OwnClock {
    pub(crate) fn new(now: Arc<Now>) -> Self {
        Self(Entry::new(now))
    }

    /// Reads the clock. Returns `None` if it panics or is called recursively. Called outside any
    /// call.
    pub(crate) fn read(&self) -> Option<SystemTime> {
        let mut timestamp = None;
        self.0.call(|now| timestamp = Some(now()));
        timestamp
    }
}

/// How long a thread computes timestamps from one reading of the system time. A change of the
/// system time reaches the events of the thread after this time.
const READING_HOLDS: Duration = Duration::from_millis(10);

const_thread_local! {
    /// The last reading of the system time by this thread.
    static READING: Cell<Option<(Tick, SystemTime)>> = Cell::new(None);
}

/// The system time at `at`, a reading of the real clock that was taken just before.
///
/// Computing it from an earlier reading of the system time saves a reading for each event.
pub(crate) fn system_time(at: Tick) -> SystemTime {
    READING.with(|reading| {
        if let Some((tick, time)) = reading.get() {
            let since = at.since(tick);
            if tick <= at && since < READING_HOLDS {
                return time.checked_add(since).unwrap_or(time);
            }
        }
        let (tick, time) = (Tick::now(), SystemTime::now());
        // A delay between the two readings would shift the timestamps that are computed from them.
        let is_usable = Tick::now().since(tick) < Duration::from_millis(1);
        reading.set(is_usable.then_some((tick, time)));
        time.checked_sub(tick.since(at)).unwrap_or(time)
    })
}
