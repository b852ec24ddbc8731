//! Starting threads before the first call needs them.

use std::io;
use std::sync::mpsc;

use crate::{threads, timer};

use super::{Job, pool, settings};

/// Starts the threads that keep deadlines and as many workers as it takes for there to be
/// `workers`, up to the [cap](super::Settings::cap). Waits until the workers are ready, and returns
/// how many there are.
///
/// A new thread inherits properties of the thread that starts it, see the [module](super). Without
/// this function that is whichever thread makes a call that needs another worker. Idle workers
/// still leave after the [`keep_alive`](super::Settings::keep_alive) time, and further ones are
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
/// Without [`reuse`](super::Settings::reuse) of workers, no worker is started.
///
/// # Errors
///
/// If the system refuses a thread. Threads that have been started until then stay. In a forked
/// child and inside [`on_thread_start`](super::Settings::on_thread_start), no thread is started.
pub fn start(workers: usize) -> Result<usize, StartError> {
    start_all(workers).map_err(|source| StartError {
        workers: pool::live(),
        source,
    })
}

fn start_all(workers: usize) -> io::Result<usize> {
    if !threads::are_available() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "no threads in a forked child or at the start of a thread",
        ));
    }
    timer::start()?;
    if settings::reuse() {
        let (starting, ready) = mpsc::channel();
        pool::fill(workers.min(settings::cap()), || {
            Job::Ready(starting.clone())
        })?;
        drop(starting);
        // Ends when every worker has dropped its sender.
        ready.iter().for_each(drop);
    }
    Ok(pool::live())
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
