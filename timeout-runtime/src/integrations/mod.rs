//! Other crates that this one works with, a feature each.

#[cfg(feature = "latency")]
pub mod latency;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "tokio-util")]
pub mod tokio_util;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(feature = "tracing")]
pub mod tracing;

#[cfg(any(feature = "metrics", feature = "tracing"))]
use crate::event::EventKind;

/// The ending in one word, for machines.
#[cfg(any(feature = "metrics", feature = "tracing"))]
fn ending(kind: &EventKind<'_>) -> &'static str {
    match kind {
        EventKind::Succeeded => "succeeded",
        EventKind::Failed(_) => "failed",
        EventKind::TimedOut => "timed_out",
        EventKind::DeadlineExceeded => "deadline_exceeded",
        EventKind::Cancelled => "cancelled",
        EventKind::NotStarted(_) => "not_started",
        EventKind::Dropped => "dropped",
        EventKind::AbandonedWorkerSucceeded => "abandoned_succeeded",
        EventKind::AbandonedWorkerFailed(_) => "abandoned_failed",
    }
}
