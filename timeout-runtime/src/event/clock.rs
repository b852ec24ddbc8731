//! [`OwnClock`]: a policy's own function for the timestamps of its events. Without one, or if it
//! panics, an event gets the system time.

use std::sync::Arc;
use std::time::SystemTime;

use crate::registry::Entry;

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
