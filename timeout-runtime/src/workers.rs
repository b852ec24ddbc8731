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
//! properties. The function given to [`on_thread_start`] runs on each of our threads first, and can
//! set what it needs.

use std::io;
use std::sync::Arc;

use crate::call::jobs;
use crate::threads;

pub use crate::call::abandoned::{Abandoned, abandoned, drain, drain_async};
pub use crate::pool::{Settings, Stats};

/// Counts the workers by what they do.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::{within_blocking, workers};
///
/// let stats = within_blocking(Duration::from_secs(60), |_token| workers::stats())?;
/// assert_eq!((stats.busy, stats.abandoned), (1, 0));
/// # Ok::<(), timeout_runtime::TimeoutError>(())
/// ```
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
/// Settings { keep_alive: Duration::MAX, ..Settings::current() }.apply();
/// assert!(workers::start(4)? >= 4);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Without [`reuse`](Settings::reuse) of workers, no worker is started.
///
/// # Errors
///
/// Returns an error if the system refuses a thread. Threads that have been started until then stay,
/// and [`stats`] counts them. In a forked child and inside the function of [`on_thread_start`], no
/// thread is started.
pub fn start(workers: usize) -> io::Result<usize> {
    jobs::start_threads(workers)?;
    Ok(jobs::workers())
}

/// Makes every thread of this crate run `function` at its start: each worker, and each thread that
/// keeps deadlines or runs callbacks. It replaces the function that was set before. Threads that
/// have been started already do not run it.
///
/// It is the place to set what a thread would otherwise [inherit](self#what-a-worker-inherits),
/// such as a priority, a signal mask or a set of processors. The thread has its name by then:
/// `timeout-1`, `timeout-2` and so on for workers, `timeout-timer` and `timeout-deputy` for the
/// threads that keep deadlines, `timeout-background` for those that run callbacks.
///
/// The function runs outside any call. The thread does nothing else before it returns, and the
/// first call of a worker waits for that as part of its limit. A panic ends in the function.
/// Calls made in it may run inline; those that need a worker are not started, for
/// [`NoWorker`](crate::Cause::NoWorker).
///
/// ```
/// use std::cell::Cell;
/// use std::thread;
/// use std::time::Duration;
/// use timeout_runtime::{within_blocking, workers};
///
/// thread_local! {
///     static IS_WORKER: Cell<bool> = const { Cell::new(false) };
/// }
///
/// workers::on_thread_start(|| {
///     let thread = thread::current();
///     let number = thread.name().and_then(|name| name.strip_prefix("timeout-"));
///     IS_WORKER.set(number.is_some_and(|number| number.parse::<u32>().is_ok()));
/// });
/// assert_eq!(within_blocking(Duration::from_secs(60), |_token| IS_WORKER.get()), Ok(true));
/// ```
///
/// With the crate `nix`, signals are left to the threads of the program:
///
/// ```ignore
/// use nix::sys::signal::SigSet;
///
/// workers::on_thread_start(|| SigSet::all().thread_block().expect("a valid mask"));
/// ```
pub fn on_thread_start(function: impl Fn() + Send + Sync + 'static) {
    threads::set_hook(Arc::new(function));
}
