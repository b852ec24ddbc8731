//! The processes of this system.

use std::fs;

/// Returns whether a process that is not a zombie has `word` in its command line. On systems other
/// than Linux returns `false`.
#[must_use]
pub fn with(word: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = processes.map(|process| fs::read(process.path().join("cmdline")));
    lines.any(|line| line.is_ok_and(|line| String::from_utf8_lossy(&line).contains(word)))
}
