//! The pool of workers of this process, the type of its jobs, and the start of our threads.

use std::io;
use std::sync::mpsc;

use crate::event::WorkerName;
use crate::pool::settings;
use crate::pool::{self, Handed, LastWorker, NoWorker, Pool, Stats, Ticket};
use crate::sync::{const_thread_local, one_per_process};
use crate::threads;
use crate::time::test_clock::Participant;
use crate::token::node::TIMER;

use super::abandoned;
use super::cell::WorkerSide;

/// What a worker runs.
pub(super) enum Job {
    /// The operation of a call.
    Call(WorkerSide),
    /// Nothing. Dropping the sender tells the receiver that the worker is idle.
    Ready(mpsc::Sender<()>),
}

impl Job {
    /// The operation as a participant of its test clock.
    fn participant(&self) -> Option<&Participant> {
        match self {
            Self::Call(call) => call.propagated.participant(),
            Self::Ready(_) => None,
        }
    }
}

impl pool::Job for Job {
    fn queued(&self) {
        if let Some(participant) = self.participant() {
            participant.queue();
        }
    }

    fn unqueued(&self) {
        if let Some(participant) = self.participant() {
            participant.unqueue();
        }
    }

    fn run(self, worker: WorkerName, free: &mut dyn FnMut()) {
        match self {
            Self::Call(call) => call.run(worker, free),
            Self::Ready(starting) => {
                free();
                drop(starting);
            }
        }
    }
}

/// Where a submitted job is.
pub(super) type Place = pool::Place<Job>;

one_per_process! {
    static POOL: Pool<Job> = Pool::new();
}

const_thread_local! {
    static LAST: LastWorker<Job> = LastWorker::none();
}

/// Gives `job` to a worker. At the cap the job is queued.
pub(super) fn submit(job: Job) -> Result<Place, NoWorker> {
    // A thread that is torn down has no last worker.
    let last = LAST.try_with(LastWorker::take);
    let last = last.unwrap_or_else(|_| LastWorker::none());
    POOL.submit(job, settings::cap(), last)
}

/// Takes a job out of the queue. Returns `None` if a worker has taken it.
pub(super) fn withdraw(ticket: &Ticket) -> Option<Job> {
    POOL.withdraw(ticket)
}

/// Makes the current thread try the worker of `handed` first from now on.
pub(super) fn remember(handed: Handed<Job>) {
    // A thread that is torn down makes no next call.
    let _ = LAST.try_with(|last| last.set(handed));
}

/// Counts the workers by what they do.
pub(crate) fn stats() -> Stats {
    POOL.stats(abandoned::on_workers())
}

/// The number of workers.
pub(crate) fn workers() -> usize {
    POOL.live()
}

/// Starts the threads of the timer, and workers until there are `workers`. Waits until they are
/// idle.
pub(crate) fn start_threads(workers: usize) -> io::Result<()> {
    if !threads::are_available() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "no threads in a forked child or at the start of a thread",
        ));
    }
    TIMER.start()?;
    if settings::reuse() {
        let (starting, ready) = mpsc::channel();
        POOL.fill(workers.min(settings::cap()), || {
            Job::Ready(starting.clone())
        })?;
        drop(starting);
        // Ends when every worker has dropped its sender.
        ready.iter().for_each(drop);
    }
    Ok(())
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;

    /// A larger one would not fit in the cache line where a job changes hands.
    #[test]
    fn a_job_has_six_words() {
        assert!(size_of::<Job>() <= 6 * size_of::<usize>());
    }
}
