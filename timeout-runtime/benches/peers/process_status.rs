//! Reads the number of threads and the memory of this process from Linux.

use std::fs;

/// Reads a number from `/proc/self/status`. Returns `None` on other systems.
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

/// Returns the memory in use, in bytes.
pub(crate) fn memory() -> Option<f64> {
    Some(f64::from(entry("VmRSS")?) * 1024.0)
}
