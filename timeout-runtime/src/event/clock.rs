//! [`TimestampClock`]: the source of the timestamps of events.

use std::sync::Arc;
use std::time::SystemTime;

use crate::registry::Entry;

/// A source of timestamps for events. It does not affect deadlines, which use the monotonic clock.
///
/// Implemented for closures and functions that return a [`SystemTime`], such as
/// [`SystemTime::now`].
pub trait TimestampClock: Send + Sync {
    /// Returns the timestamp of an event.
    ///
    /// # Panics
    ///
    /// A panic in this method is caught, and the event gets the system time. Events of calls that
    /// this method makes itself also get the system time.
    fn now(&self) -> SystemTime;
}

impl<F: Fn() -> SystemTime + Send + Sync> TimestampClock for F {
    fn now(&self) -> SystemTime {
        self()
    }
}

/// A policy's own clock.
#[derive(Clone)]
pub(crate) struct OwnClock(Entry<dyn TimestampClock>);

impl OwnClock {
    pub(crate) fn new(clock: Arc<dyn TimestampClock>) -> Self {
        Self(Entry::new(clock))
    }

    /// Reads the clock. Returns `None` if it panics or is called recursively. Called outside any
    /// call.
    pub(crate) fn read(&self) -> Option<SystemTime> {
        let mut now = None;
        self.0.call(|clock| now = Some(clock.now()));
        now
    }
}
