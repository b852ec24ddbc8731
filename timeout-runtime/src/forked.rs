//! Whether this process is a forked child: it has what its parent holds in memory, and none of our threads.
//!
//! What a thread of the parent was doing at the fork is never done in the child: a lock that it held stays locked, a job is never taken. Nor
//! can the child rely on a thread of its own: the standard library takes such a lock for each that starts. To ask for the process id is a
//! system call, so it is asked where something slower comes next: before the pool's lock is taken for a job, before a caller parks, and
//! before the timer's thread is started. Jobs are then refused, and who waits for a deadline looks at the clock.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Whether processes can fork. Elsewhere the process id is not read: WASI has none.
const CAN_FORK: bool = cfg!(unix);

/// The process that our threads belong to; no process before there are any.
static HOME: AtomicU32 = AtomicU32::new(NO_PROCESS);

const NO_PROCESS: u32 = 0;

/// Whether this process was forked from the one that our threads belong to.
pub(crate) fn is_child() -> bool {
    let home = HOME.load(Ordering::Relaxed);
    CAN_FORK && home != NO_PROCESS && home != process::id()
}

/// A thread is about to be started in this process.
pub(crate) fn record_pid() {
    if CAN_FORK && HOME.load(Ordering::Relaxed) == NO_PROCESS {
        HOME.store(process::id(), Ordering::Relaxed);
    }
}
