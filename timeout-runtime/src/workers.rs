//! Worker threads: their number, their settings, and the abandoned operations that still run on
//! them.
//!
//! A sync call runs on a worker by default. Workers are named `timeout-1`, `timeout-2` and so on,
//! are reused, and end after some time without work.
//!
//! # What a worker inherits
//!
//! Every operating system passes some properties of a thread on to the threads that it starts. On
//! Linux these are the scheduling class and priority, the set of processors, the signal mask,
//! credentials that were changed for one thread, and namespaces. A worker is started by the first
//! call that needs it, so it has the properties of that caller's thread, and keeps them for all
//! later calls. The same holds for the threads that keep deadlines and run callbacks. A caller with
//! a low priority thus makes later calls of other threads slow, and their limits late.
//!
//! Two things help. [`start`] starts these threads early, from a thread that has the right
//! properties. The function given to [`Settings::on_thread_start`] runs on each of our threads
//! first, and can set what it needs.

use std::io;

use crate::call::jobs;

pub use crate::call::abandoned::{Abandoned, abandoned, drain, drain_async};
pub use crate::pool::{Settings, Stats};

/// Counts the workers by what they do.
#[must_use]
pub fn stats() -> Stats {
    jobs::stats()
}

/// Starts the threads that keep deadlines and as many workers as it takes for there to be
/// `workers`, up to the [cap](Settings::cap). Waits until the workers are ready, and returns
/// how many there are.
///
/// A new thread inherits properties of the thread that starts it, see the [module](self). Without
/// this function that is whichever thread makes a call that needs another worker. Idle workers
/// still leave after the [`keep_alive`](Settings::keep_alive) time, and further ones are
/// started by calls. Threads that run callbacks are started when there are callbacks to run.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::workers::{self, Settings};
///
/// // In `main`, before any thread changes its priority or its signal mask.
/// Settings::new().keep_alive(Duration::MAX).apply();
/// assert!(workers::start(4)? >= 4);
/// # Ok::<(), workers::StartError>(())
/// ```
///
/// Without [`reuse`](Settings::reuse) of workers, no worker is started.
///
/// # Errors
///
/// If the system refuses a thread. Threads that have been started until then stay. In a forked
/// child and inside [`on_thread_start`](Settings::on_thread_start), no thread is started.
pub fn start(workers: usize) -> Result<usize, StartError> {
    let started = jobs::start_threads(workers);
    let workers = jobs::workers();
    match started {
        Ok(()) => Ok(workers),
        Err(source) => Err(StartError { workers, source }),
    }
}

/// The system refused to start a thread; returned by [`start`].
#[derive(Debug, thiserror::Error)]
#[error("cannot start another thread; workers running: {workers}")]
pub struct StartError {
    workers: usize,
    source: io::Error,
}

impl StartError {
    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }
}
