//! [`Pool`]: all workers, the list of idle ones, and the queue of jobs.
//!
//! 1. The list of idle workers may hold stale entries; a claim decides. A worker that becomes idle
//!    is listed already or lists itself: it declares itself idle, then reads whether it is listed.
//!    A thread that takes it off the list clears that mark first and claims the worker afterwards.
//! 2. A job is queued only under the lock, if no idle worker is listed and no further one may
//!    start. A worker that becomes idle unlisted, or leaves, reads the queue under the same lock
//!    and takes what it finds. So the first worker that becomes free takes a queued job.
//! 3. In a forked child no job is submitted under the lock (`forked.rs`).

pub(crate) mod settings;
mod spin;
mod worker;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::event::WorkerName;
use crate::memory::Shrink;
use crate::sync::{Mutex, const_fn, lock, thread};
use crate::threads;

pub use settings::Settings;
pub(crate) use spin::Spin;
use worker::{Claimed, Worker};
pub(crate) use worker::{Handed, LastWorker};

/// What a worker runs.
pub(crate) trait Job: Send + 'static {
    /// The job waits for a worker from now on. Called under the lock of the pool.
    fn queued(&self) {}

    /// A worker takes the job that has waited. Called under the lock of the pool.
    fn unqueued(&self) {}

    /// Runs the job. `free` makes the worker idle; the job calls it early if nothing slow is left.
    fn run(self, worker: WorkerName, free: &mut dyn FnMut());
}

pub(crate) struct Pool<J> {
    state: Mutex<State<J>>,
}

struct State<J> {
    idle: Vec<Arc<Worker<J>>>,
    live: BTreeMap<WorkerName, Arc<Worker<J>>>,
    /// How many of those have no thread yet, and may be refused one.
    starting: usize,
    queue: BTreeMap<u64, J>,
    last_name: u32,
    last_ticket: u64,
}

/// There is no worker, and none can be started.
#[derive(Debug)]
pub(crate) struct NoWorker;

/// The system has refused the thread of a worker.
struct Refused<J> {
    job: J,
    error: io::Error,
}

/// Identifies a queued job.
pub(crate) struct Ticket(u64);

/// Where a submitted job is.
pub(crate) enum Place<J> {
    /// On a worker.
    Handed(Handed<J>),
    /// In the queue.
    Queued(Ticket),
}

/// The number of workers by what they do. Returned by [`stats`](crate::workers::stats).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// All workers.
    pub live: usize,
    /// Workers without a job.
    pub idle: usize,
    /// Workers that run an operation, abandoned ones included.
    pub busy: usize,
    /// Workers that run an abandoned operation.
    pub abandoned: usize,
    /// Calls that wait for a worker.
    pub queued: usize,
}

impl<J: Job> Pool<J> {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                state: Mutex::new(State::EMPTY),
            }
        }
    }

    /// The number of workers.
    pub(crate) fn live(&self) -> usize {
        lock(&self.state).live.len()
    }

    /// Counts the workers by what they do. `abandoned` of them run an abandoned operation.
    pub(crate) fn stats(&self, abandoned: usize) -> Stats {
        let state = lock(&self.state);
        let idle = state
            .live
            .values()
            .filter(|worker| worker.is_idle())
            .count();
        Stats {
            live: state.live.len(),
            idle,
            busy: state.live.len() - idle,
            abandoned,
            queued: state.queue.len(),
        }
    }

    /// Gives `job` to the last worker of the caller if that is idle, or to another one, which is
    /// started if there is none. With `cap` workers at work the job is queued.
    pub(crate) fn submit(
        &'static self,
        mut job: J,
        cap: usize,
        last: LastWorker<J>,
    ) -> Result<Place<J>, NoWorker> {
        let reuse = settings::reuse();
        if let Some(claimed) = reuse.then(|| last.claim()).flatten() {
            return Ok(Place::Handed(claimed.give(job)));
        }
        if !threads::are_available() {
            return Err(NoWorker);
        }
        let mut refused = false;
        loop {
            let mut state = lock(&self.state);
            let has_room = state.live.len() < cap && !refused;
            let may_claim = reuse || !has_room;
            if let Some(claimed) = may_claim.then(|| state.claim_idle()).flatten() {
                drop(state);
                return Ok(Place::Handed(claimed.give(job)));
            }
            if has_room {
                let worker = state.admit(job);
                drop(state);
                match self.start(worker) {
                    Ok(handed) => return Ok(Place::Handed(handed)),
                    Err(refused) => job = refused.job,
                }
                refused = true;
            } else if state.live.len() > state.starting {
                return Ok(Place::Queued(state.enqueue(job)));
            } else if state.starting == 0 {
                return Err(NoWorker);
            } else {
                // Another thread is about to learn whether the system grants a thread.
                drop(state);
                thread::yield_now();
            }
        }
    }

    /// Starts workers until there are `count`. Each begins with a job that `job` makes.
    pub(crate) fn fill(&'static self, count: usize, job: impl Fn() -> J) -> io::Result<()> {
        loop {
            let mut state = lock(&self.state);
            if state.live.len() >= count {
                return Ok(());
            }
            let worker = state.admit(job());
            drop(state);
            self.start(worker).map_err(|refused| refused.error)?;
        }
    }

    /// Takes a job out of the queue. Returns `None` if a worker has taken it.
    pub(crate) fn withdraw(&self, &Ticket(ticket): &Ticket) -> Option<J> {
        lock(&self.state).queue.remove(&ticket)
    }

    /// Starts the thread of an admitted worker. Returns its job if the system refuses the thread.
    fn start(&'static self, worker: Arc<Worker<J>>) -> Result<Handed<J>, Refused<J>> {
        let run = {
            let worker = worker.clone();
            move || worker.run(self)
        };
        let spawned = threads::start(worker.name.to_string(), settings::stack_size(), run);
        let mut state = lock(&self.state);
        state.starting -= 1;
        let Err(error) = spawned else {
            drop(state);
            return Ok(Handed::first(worker));
        };
        state.live.remove(&worker.name);
        drop(state);
        match worker.take_job() {
            Some(job) => Err(Refused { job, error }),
            None => unreachable!("only the worker's own thread takes its job"),
        }
    }

    /// A worker becomes idle, unless it claims itself for a queued job.
    pub(super) fn park_idle(&self, worker: &Arc<Worker<J>>) {
        let is_listed = worker.declare_idle();
        if is_listed {
            return;
        }
        let mut state = lock(&self.state);
        if state.queue.is_empty() {
            worker.enlist();
            state.idle.push(worker.clone());
            return;
        }
        let Some(claimed) = Claimed::claim(worker.clone()) else {
            return;
        };
        if let Some((_, job)) = state.queue.pop_first() {
            job.unqueued();
            drop(state);
            claimed.give(job);
        }
    }

    /// A worker leaves, unless a job is queued. Returns whether it has been assigned one.
    pub(super) fn retire(&self, worker: &Arc<Worker<J>>) -> bool {
        let mut state = lock(&self.state);
        if let Some((_, job)) = state.queue.pop_first() {
            job.unqueued();
            worker.assign(job);
            return true;
        }
        worker.go();
        state.live.remove(&worker.name);
        state.idle.retain(|idle| !Arc::ptr_eq(idle, worker));
        state.idle.shrink();
        false
    }
}

impl<J: Job> State<J> {
    const EMPTY: Self = Self {
        idle: Vec::new(),
        live: BTreeMap::new(),
        starting: 0,
        queue: BTreeMap::new(),
        last_name: 0,
        last_ticket: 0,
    };

    /// A new worker, which begins with `job`. Its thread is not started yet.
    fn admit(&mut self, job: J) -> Arc<Worker<J>> {
        self.last_name = self.last_name.wrapping_add(1).max(1);
        let name = WorkerName(self.last_name);
        let worker = Arc::new(Worker::new(name, job));
        self.live.insert(name, worker.clone());
        self.starting += 1;
        worker
    }

    fn enqueue(&mut self, job: J) -> Ticket {
        job.queued();
        self.last_ticket += 1;
        self.queue.insert(self.last_ticket, job);
        Ticket(self.last_ticket)
    }

    /// Takes workers off the list of idle ones until one can be claimed.
    fn claim_idle(&mut self) -> Option<Claimed<J>> {
        while let Some(worker) = self.idle.pop() {
            worker.delist();
            if let Some(claimed) = Claimed::claim(worker) {
                return Some(claimed);
            }
        }
        None
    }
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;
