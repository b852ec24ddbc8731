//! The pool: parked threads, each woken by name.
//!
//! ```text
//!            claim            hand over          take
//!   idle ────────────► claimed ─────────► job ────────► busy
//!    │ ▲                                                 │
//!    │ └──────────────────── rest ───────────────────────┘
//!    │ leave (idle for too long)
//!    ▼
//!   gone
//! ```
//!
//! 1. Only who has claimed a worker, by the transition from *idle*, hands it a job; only the worker takes it. So a worker that
//!    leaves cannot be handed one.
//! 2. The list of idle workers may hold stale entries: the claim decides. A worker that rests is in the list or puts itself there:
//!    it declares itself idle, then looks whether it is listed; who takes it off the list says so, then tries the claim.
//! 3. A job is queued only under the lock, with no idle worker listed and none to be started. A worker that rests unlisted, or
//!    leaves, looks at the queue under the same lock. So a queued job is taken by the first worker that becomes free.
//! 4. A caller remembers the worker that it used last and tries it first: calls in a row touch no shared list.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, Thread};
use std::time::Instant;

use crate::event::WorkerName;
use crate::parking;
use crate::sync::lock;
use crate::unwind;

use super::{Job, abandoned, settings};

const IDLE: u8 = 0;
const CLAIMED: u8 = 1;
const JOB: u8 = 2;
const BUSY: u8 = 3;
const GONE: u8 = 4;

struct Worker {
    name: WorkerName,
    word: AtomicU8,
    listed: AtomicBool,
    job: Mutex<Option<Arc<dyn Job>>>,
    thread: OnceLock<Thread>,
}

struct State {
    idle: Vec<Arc<Worker>>,
    live: BTreeMap<WorkerName, Arc<Worker>>,
    /// How many of those have no thread yet, and may not get one.
    starting: usize,
    queue: BTreeMap<u64, Arc<dyn Job>>,
    last_name: u64,
    last_ticket: u64,
}

static STATE: Mutex<State> = Mutex::new(State {
    idle: Vec::new(),
    live: BTreeMap::new(),
    starting: 0,
    queue: BTreeMap::new(),
    last_name: 0,
    last_ticket: 0,
});

thread_local! {
    static LAST: RefCell<Option<Arc<Worker>>> = const { RefCell::new(None) };
}

/// There is no worker and none can be started.
#[derive(Debug)]
pub(crate) struct NoWorker;

/// A place in the queue.
pub(crate) struct Ticket(u64);

/// Where a job has got to.
pub(crate) enum Place {
    /// A worker has it.
    Handed,
    /// It waits for a worker.
    Queued(Ticket),
}

/// How many workers there are, and what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// All worker threads.
    pub live: usize,
    /// Those that wait for something to do.
    pub idle: usize,
    /// Those that run an operation, the abandoned ones among them, or the callbacks of a deadline, which may exceed the cap.
    pub busy: usize,
    /// Those that run an operation whose call has ended.
    pub abandoned: usize,
    /// Calls that wait for a worker.
    pub queued: usize,
}

/// How many workers there are now, and what they do.
#[must_use]
pub fn stats() -> Stats {
    let abandoned = abandoned::on_workers();
    let state = lock(&STATE);
    let idle = state
        .live
        .values()
        .filter(|worker| worker.word.load(Ordering::Relaxed) == IDLE)
        .count();
    Stats {
        live: state.live.len(),
        idle,
        busy: state.live.len() - idle,
        abandoned,
        queued: state.queue.len(),
    }
}

/// Hands `job` to a worker, started now if need be. With no worker to be had it is queued until one is free.
pub(crate) fn submit(job: Arc<dyn Job>) -> Result<Place, NoWorker> {
    let job = match hand_over(job, settings::cap()) {
        Ok(()) => return Ok(Place::Handed),
        Err(job) => job,
    };
    // Since the pool was looked at under another hold of the lock, it is looked at again.
    let mut state = loop {
        let mut state = lock(&STATE);
        if let Some(worker) = state.claim_idle() {
            drop(state);
            worker.give(job);
            return Ok(Place::Handed);
        }
        if state.live.len() > state.starting {
            break state;
        }
        if state.starting == 0 {
            return Err(NoWorker);
        }
        // Somebody else is about to learn whether a thread can be had.
        drop(state);
        thread::yield_now();
    };
    state.last_ticket += 1;
    let ticket = state.last_ticket;
    state.queue.insert(ticket, job);
    Ok(Place::Queued(Ticket(ticket)))
}

/// Hands `job` to a worker, past the cap if need be; `false` if no thread can be started.
pub(crate) fn submit_at_once(job: Arc<dyn Job>) -> bool {
    hand_over(job, usize::MAX).is_ok()
}

/// Takes a job out of the queue; nothing happens if a worker has it.
pub(crate) fn withdraw(&Ticket(ticket): &Ticket) {
    let job = lock(&STATE).queue.remove(&ticket);
    drop(job);
}

fn hand_over(job: Arc<dyn Job>, cap: usize) -> Result<(), Arc<dyn Job>> {
    if settings::reuse() {
        let last = LAST.try_with(|last| last.borrow().clone()).ok().flatten();
        if let Some(worker) = last
            && worker.claim()
        {
            worker.give(job);
            return Ok(());
        }
        let idle = lock(&STATE).claim_idle();
        if let Some(worker) = idle {
            worker.remember();
            worker.give(job);
            return Ok(());
        }
    }
    start(job, cap)
}

/// Starts a worker with `job`, unless there are `cap` already.
fn start(job: Arc<dyn Job>, cap: usize) -> Result<(), Arc<dyn Job>> {
    let worker = {
        let mut state = lock(&STATE);
        if state.live.len() >= cap {
            return Err(job);
        }
        state.last_name += 1;
        let name = WorkerName(state.last_name);
        let worker = Arc::new(Worker {
            name,
            word: AtomicU8::new(JOB),
            listed: AtomicBool::new(false),
            job: Mutex::new(Some(job)),
            thread: OnceLock::new(),
        });
        state.live.insert(name, worker.clone());
        state.starting += 1;
        worker
    };
    let mut thread = thread::Builder::new().name(worker.name.to_string());
    if let Some(bytes) = settings::stack_size() {
        thread = thread.stack_size(bytes);
    }
    let run = {
        let worker = worker.clone();
        move || worker.run()
    };
    // An impossible stack size makes the standard library panic rather than fail.
    let spawned = unwind::catch(|| thread.spawn(run));
    let mut state = lock(&STATE);
    state.starting -= 1;
    match spawned {
        Ok(Ok(_)) => {
            drop(state);
            worker.remember();
            Ok(())
        }
        refused => {
            state.live.remove(&worker.name);
            drop(state);
            if let Err(payload) = refused {
                unwind::dispose(payload);
            }
            match lock(&worker.job).take() {
                Some(job) => Err(job),
                None => unreachable!("only the worker's own thread takes its job"),
            }
        }
    }
}

impl State {
    /// Takes idle workers off the list until one can be claimed.
    fn claim_idle(&mut self) -> Option<Arc<Worker>> {
        while let Some(worker) = self.idle.pop() {
            worker.listed.swap(false, Ordering::SeqCst);
            if worker.claim() {
                return Some(worker);
            }
        }
        None
    }
}

impl Worker {
    fn claim(&self) -> bool {
        self.word
            .compare_exchange(IDLE, CLAIMED, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// Hands a job to this worker, which the caller has claimed.
    fn give(&self, job: Arc<dyn Job>) {
        *lock(&self.job) = Some(job);
        self.word.store(JOB, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// The current thread tries this worker first from now on.
    fn remember(self: &Arc<Self>) {
        let last = LAST.try_with(|last| last.replace(Some(self.clone())));
        drop(last);
    }

    fn run(self: Arc<Self>) {
        let _ = self.thread.set(thread::current());
        while self.wait() {
            self.word.store(BUSY, Ordering::Relaxed);
            let job = lock(&self.job).take();
            let reuse = settings::reuse();
            if let Some(job) = job {
                let mut free = !reuse;
                unwind::contain(|| {
                    job.run(self.name, &mut || {
                        if !std::mem::replace(&mut free, true) {
                            self.rest();
                        }
                    });
                });
                if !free {
                    self.rest();
                }
            }
            if !reuse && !self.retire() {
                return;
            }
        }
    }

    /// Waits for a job; `false` once the worker has left.
    fn wait(self: &Arc<Self>) -> bool {
        let until = Instant::now().checked_add(settings::keep_alive());
        loop {
            if self.word.load(Ordering::Acquire) == JOB {
                return true;
            }
            if until.is_some_and(|until| Instant::now() >= until)
                && self
                    .word
                    .compare_exchange(IDLE, GONE, Ordering::SeqCst, Ordering::SeqCst)
                    .is_ok()
            {
                return self.retire();
            }
            parking::park_until(until);
        }
    }

    /// Leaves the pool, but not while jobs are queued; whether there is one to take.
    fn retire(self: &Arc<Self>) -> bool {
        let mut state = lock(&STATE);
        if let Some((_, job)) = state.queue.pop_first() {
            *lock(&self.job) = Some(job);
            self.word.store(JOB, Ordering::Release);
            return true;
        }
        self.word.store(GONE, Ordering::SeqCst);
        state.live.remove(&self.name);
        state.idle.retain(|worker| !Arc::ptr_eq(worker, self));
        false
    }

    /// Declares this worker idle, and takes a queued job if it is still there to be claimed.
    fn rest(self: &Arc<Self>) {
        self.word.swap(IDLE, Ordering::SeqCst);
        if self.listed.load(Ordering::SeqCst) {
            return;
        }
        let mut state = lock(&STATE);
        if state.queue.is_empty() {
            self.listed.store(true, Ordering::SeqCst);
            state.idle.push(self.clone());
        } else if self.claim()
            && let Some((_, job)) = state.queue.pop_first()
        {
            drop(state);
            self.give(job);
        }
    }
}
