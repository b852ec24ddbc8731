//! Whether this process is a forked child: it has what the pool holds in memory, and none of its threads.
//!
//! What a thread of the parent was doing at the fork is never done in the child: a lock that it held stays locked, a job is never taken. To ask
//! for the process id is a system call, so it is asked where something slower comes next: before the pool's lock is taken for a
//! job, and before a caller parks. Jobs are then refused; the child does not start a pool of its own, since the timer's thread is not there
//! either, and the limits of async calls are not kept.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that the workers belong to; no process before there are any.
static HOME: AtomicU32 = AtomicU32::new(NO_PROCESS);

const NO_PROCESS: u32 = 0;

/// Whether this process was forked from the one that the workers belong to.
pub(crate) fn is_child() -> bool {
    let home = HOME.load(Ordering::Relaxed);
    home != NO_PROCESS && home != process::id()
}

/// Workers are about to be started in this process.
pub(super) fn settle() {
    if HOME.load(Ordering::Relaxed) == NO_PROCESS {
        HOME.store(process::id(), Ordering::Relaxed);
    }
}
