//! [`TimestampClock`]: where the timestamps of events come from.

use std::sync::Arc;
use std::time::SystemTime;

use crate::frame;
use crate::registry::Entry;

/// A source of timestamps for events. It has no say in any deadline, those are kept by the monotonic clock.
///
/// Implemented for closures, [`SystemTime::now`] among them.
pub trait TimestampClock: Send + Sync {
    /// The time to be stamped on an event. A panic in here stays in here. The system's time is then taken, and so it is for the events of
    /// calls that are made in here.
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

    /// What it says, outside any call; `None` if it panics, or is asked on behalf of itself.
    pub(crate) fn read(&self) -> Option<SystemTime> {
        let mut now = None;
        frame::outside(|| self.0.call(|clock| now = Some(clock.now())));
        now
    }
}
