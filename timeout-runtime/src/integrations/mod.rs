//! Other crates that this one works with: a module each, which the feature of its name adds. No module is there by default.

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
