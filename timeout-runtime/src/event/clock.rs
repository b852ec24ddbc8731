//! [`TimestampClock`]: where the timestamps of events come from.

use std::time::SystemTime;

/// A source of timestamps for events. It has no say in any deadline, those are kept by the monotonic clock.
///
/// Implemented for closures, [`SystemTime::now`] among them.
pub trait TimestampClock: Send + Sync {
    /// The time to be stamped on an event. A panic in here stays in here; the system's time is then taken.
    fn now(&self) -> SystemTime;
}

impl<F: Fn() -> SystemTime + Send + Sync> TimestampClock for F {
    fn now(&self) -> SystemTime {
        self()
    }
}
