//! What works together with other crates, a feature and a file each.

#[cfg(feature = "latency")]
pub(crate) mod latency;
