//! Integrations with other crates: one module for each crate or use, behind the feature of the same
//! name. None is enabled by default.

#[cfg(feature = "crossbeam-channel")]
pub mod crossbeam_channel;
#[cfg(feature = "latency")]
pub mod latency;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "tokio-util")]
pub mod tokio_util;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(feature = "tracing")]
pub mod tracing;
#[cfg(any(
    feature = "crossbeam-channel",
    feature = "process",
    feature = "tokio-util"
))]
mod waiter;
