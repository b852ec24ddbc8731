//! Detects a forked child process, which has the memory of its parent but none of our threads.
//!
//! In the child, a lock that another thread held at the fork stays locked, and no worker takes a
//! queued job. Starting new threads is no way out: the standard library takes such a lock itself.
//! The child therefore refuses jobs, and its callers poll the clock to wait for a deadline.
//!
//! Reading the process id is a system call. It is read only before a slower operation: before a job
//! is queued, before a caller parks, and before the timer's thread starts.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Whether processes can fork. Other targets do not read the process id: WASI has none.
const CAN_FORK: bool = cfg!(unix);

/// The process that owns our threads, or [`NO_PROCESS`] before the first thread.
static HOME: AtomicU32 = AtomicU32::new(NO_PROCESS);

const NO_PROCESS: u32 = 0;

/// Whether this process was forked from the process that owns our threads.
pub(crate) fn is_child() -> bool {
    let home = HOME.load(Ordering::Relaxed);
    CAN_FORK && home != NO_PROCESS && home != process::id()
}

/// Records this process as the owner of our threads. Called before a thread starts.
pub(crate) fn record_pid() {
    if CAN_FORK && HOME.load(Ordering::Relaxed) == NO_PROCESS {
        HOME.store(process::id(), Ordering::Relaxed);
    }
}
