//! What Linux says of this process.

use std::fs;

/// A number from `/proc/self/status`, as it stands there; `None` elsewhere.
fn entry(name: &str) -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':')
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

pub(crate) fn threads() -> Option<u32> {
    entry("Threads")
}

/// Memory in use, in bytes.
pub(crate) fn memory() -> Option<f64> {
    Some(f64::from(entry("VmRSS")?) * 1024.0)
}
