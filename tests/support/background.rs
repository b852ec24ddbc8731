//! The background threads of this process.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::fs;

/// The greatest number of background threads that the documentation allows.
pub const MOST: usize = 512;

/// The number of background threads, where the system reports it.
pub fn threads() -> usize {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return 0;
    };
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    // Linux cuts names after 15 bytes.
    names
        .filter(|name| name.starts_with("timeout-backgro"))
        .count()
}
