//! Integrations with other crates: one module for each crate or use, behind the feature of the same
//! name. None is enabled by default.

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
#[cfg(feature = "tokio-util")]
mod waiter;
