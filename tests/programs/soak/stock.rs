//! [`Stock`]: the resources of the process while no call is in progress.

use std::alloc::System;
use std::fs;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use super::ledger::breach;
use super::phase::WORKERS;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Token links, timers and all other data of a call take blocks of memory, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stock {
    /// Blocks of memory that are allocated and not freed.
    blocks: usize,
    /// Size of these blocks in bytes.
    bytes: usize,
    /// Resident memory of the process.
    resident_kib: Option<usize>,
    threads: Option<usize>,
    files: Option<usize>,
}

/// A number from `/proc/self/status`; `None` where there is no such file.
fn status(name: &str) -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

impl Stock {
    pub(crate) fn take() -> Self {
        let resident_kib = status("VmRSS:");
        let threads = status("Threads:");
        let files = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
        let memory = ALLOCATOR.stats();
        Self {
            blocks: memory.allocations - memory.deallocations,
            bytes: memory.bytes_allocated - memory.bytes_deallocated,
            resident_kib,
            threads,
            files,
        }
    }

    /// A row of the table.
    pub(crate) fn row(&self) -> String {
        let or_dash = |number: Option<usize>| {
            number.map_or_else(|| "-".to_owned(), |number| number.to_string())
        };
        format!(
            "{:>12}{:>12}{:>14}{:>10}{:>8}",
            self.blocks,
            self.bytes,
            or_dash(self.resident_kib),
            or_dash(self.threads),
            or_dash(self.files)
        )
    }

    pub(crate) fn header() -> String {
        format!(
            "{:>12}{:>12}{:>14}{:>10}{:>8}",
            "blocks", "bytes", "resident KiB", "threads", "files"
        )
    }

    /// Reports a breach for each resource that has grown since `before`.
    pub(crate) fn compare(&self, before: &Self) {
        let not_above = |what, before: Option<usize>, now: Option<usize>, per_cent: usize| {
            if let (Some(before), Some(now)) = (before, now)
                && now * 100 > before * (100 + per_cent)
            {
                breach(format!(
                    "{what}: {before} after two parts, {now} after the last"
                ));
            }
        };
        // A worker keeps a few small blocks once it has parked, panicked or used Tokio, possibly
        // late.
        let may_come = Some(before.blocks + WORKERS);
        not_above("blocks of memory", may_come, Some(self.blocks), 5);
        not_above("bytes in them", Some(before.bytes), Some(self.bytes), 5);
        not_above("resident KiB", before.resident_kib, self.resident_kib, 5);
        // The timer thread may have been replaced, and have no substitute yet.
        not_above("threads", before.threads, self.threads, 1);
        not_above("files", before.files, self.files, 0);
    }
}
