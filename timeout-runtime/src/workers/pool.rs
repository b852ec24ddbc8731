//! The pool: threads that are each woken by name.
//!
//! ```text
//!              claim            hand over          take
//!   idle ──┬─────────► claimed ─────────► job ────────► busy
//!    ▲ │   │                                             │
//!    │ ▼   │                                             │
//!  (parked)┘ leave (idle for too long) ──► gone          │
//!    ▲                                                   │
//!    └───────────────────── rest ────────────────────────┘
//! ```
//!
//! 1. Only who has claimed a worker, by the transition from *idle* or *parked*, hands it a job; only the worker takes it. So a worker
//!    that leaves cannot be handed one. A parked one is unparked, an idle one is still looking.
//! 2. The list of idle workers may hold stale entries: the claim decides. A worker that rests is in the list or puts itself there:
//!    it declares itself idle, then looks whether it is listed; who takes it off the list says so, then tries the claim.
//! 3. A job is queued only under the lock, with no idle worker listed and none to be started. A worker that rests unlisted, or
//!    leaves, looks at the queue under the same lock, and stays for what it finds there. So a queued job is taken by the first worker
//!    that becomes free.
//! 4. A caller remembers the worker that it used last and tries it first: calls in a row touch no shared list.
//! 5. In a forked child no job is handed in under the lock (`forked.rs`).
//! 6. A worker counts the jobs it was given and those it is done with, the latter on a line of memory of their own: a caller may spin on it
//!    and disturbs nobody. It is a hint and no more, the verdict is in the call's own word.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, Thread};

use crate::deadline::Clock;
use crate::event::WorkerName;
use crate::parking;
use crate::sync::lock;
use crate::tick::Tick;
use crate::unwind;

use super::spin::Spin;
use super::{Job, abandoned, forked, settings};

const IDLE: u8 = 0;
const PARKED: u8 = 1;
const CLAIMED: u8 = 2;
const JOB: u8 = 3;
const BUSY: u8 = 4;
const GONE: u8 = 5;

/// After so many calls in a row for which it has spun, a caller parks once: two that spin for each other must not keep all others from
/// their cores.
const LONGEST_STREAK: u8 = 255;

/// What others poll while its neighbours are written to.
#[repr(align(128))]
struct OwnLine<T>(T);

struct Worker {
    name: WorkerName,
    word: AtomicU8,
    /// How many jobs it was given; written by who has claimed it, or by itself when it stays for a queued one.
    given: AtomicU32,
    done: OwnLine<AtomicU32>,
    /// For its own waits.
    spin: Spin,
    /// How many callers in a row have found it done by spinning.
    streak: AtomicU8,
    listed: AtomicBool,
    job: Mutex<Option<Job>>,
    thread: OnceLock<Thread>,
}

struct State {
    idle: Vec<Arc<Worker>>,
    live: BTreeMap<WorkerName, Arc<Worker>>,
    /// How many of those have no thread yet, and may not get one.
    starting: usize,
    queue: BTreeMap<u64, Job>,
    last_name: u32,
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
    static LAST: Cell<Option<Arc<Worker>>> = const { Cell::new(None) };
}

/// There is no worker and none can be started.
#[derive(Debug)]
pub(crate) struct NoWorker;

/// A place in the queue.
pub(crate) struct Ticket(u64);

/// A worker that has a job, and the job's number among all it was given.
pub(crate) struct Handed {
    worker: Arc<Worker>,
    number: u32,
}

impl Handed {
    /// Whether the worker is done with the job.
    fn is_done(&self) -> bool {
        let done = self.worker.done.0.load(Ordering::Acquire);
        // Others may have used it since.
        done.wrapping_sub(self.number) < u32::MAX / 2
    }

    /// Waits for a moment for the worker to be done with the job, if that has been worth it lately; `false` if it was not done.
    pub(crate) fn spin(&self, spin: &Spin, until: Tick) -> bool {
        let streak = self.worker.streak.load(Ordering::Relaxed);
        let came = streak < LONGEST_STREAK && spin.until(until, || self.is_done());
        let streak = if came { streak + 1 } else { 0 };
        self.worker.streak.store(streak, Ordering::Relaxed);
        came
    }
}

/// Where a job has got to.
pub(crate) enum Place {
    /// A worker has it.
    Handed(Handed),
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
        .filter(|worker| matches!(worker.word.load(Ordering::Relaxed), IDLE | PARKED))
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
pub(crate) fn submit(job: Job) -> Result<Place, NoWorker> {
    let job = match hand_over(job, settings::cap()) {
        Ok(handed) => return Ok(Place::Handed(handed)),
        Err(job) => job,
    };
    if forked::is_child() {
        return Err(NoWorker);
    }
    // Since the pool was looked at under another hold of the lock, it is looked at again.
    let mut state = loop {
        let mut state = lock(&STATE);
        if let Some(claimed) = state.claim_idle() {
            drop(state);
            return Ok(Place::Handed(claimed.give(job)));
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

/// Hands `job` to a worker, past the cap if need be. It comes back if no thread can be started.
pub(crate) fn submit_at_once(job: Job) -> Result<(), Job> {
    hand_over(job, usize::MAX).map(drop)
}

/// Takes a job out of the queue; nothing happens if a worker has it.
pub(crate) fn withdraw(&Ticket(ticket): &Ticket) {
    let job = lock(&STATE).queue.remove(&ticket);
    drop(job);
}

fn hand_over(job: Job, cap: usize) -> Result<Handed, Job> {
    let reuse = settings::reuse();
    if reuse {
        let last = LAST.try_with(Cell::take).ok().flatten();
        if let Some(claimed) = last.and_then(Claimed::claim) {
            return Ok(claimed.give(job));
        }
    }
    if forked::is_child() {
        return Err(job);
    }
    if reuse {
        let idle = lock(&STATE).claim_idle();
        if let Some(claimed) = idle {
            return Ok(claimed.give(job));
        }
    }
    start(job, cap)
}

/// Starts a worker with `job`, unless there are `cap` already.
fn start(job: Job, cap: usize) -> Result<Handed, Job> {
    forked::settle();
    let worker = {
        let mut state = lock(&STATE);
        if state.live.len() >= cap {
            return Err(job);
        }
        state.last_name = state.last_name.wrapping_add(1).max(1);
        let name = WorkerName(state.last_name);
        let worker = Arc::new(Worker {
            name,
            word: AtomicU8::new(JOB),
            given: AtomicU32::new(1),
            done: OwnLine(AtomicU32::new(0)),
            spin: Spin::new(),
            streak: AtomicU8::new(0),
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
            Ok(Handed { worker, number: 1 })
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
    fn claim_idle(&mut self) -> Option<Claimed> {
        while let Some(worker) = self.idle.pop() {
            worker.listed.swap(false, Ordering::SeqCst);
            if let Some(claimed) = Claimed::claim(worker) {
                return Some(claimed);
            }
        }
        None
    }
}

/// A worker that nobody else can hand a job.
struct Claimed {
    worker: Arc<Worker>,
    was_parked: bool,
}

impl Claimed {
    fn claim(worker: Arc<Worker>) -> Option<Self> {
        let take = |from| {
            let word = &worker.word;
            word.compare_exchange(from, CLAIMED, Ordering::SeqCst, Ordering::SeqCst)
        };
        let was_parked = match take(IDLE) {
            Ok(_) => false,
            Err(PARKED) => take(PARKED).is_ok().then_some(true)?,
            Err(_) => return None,
        };
        Some(Self { worker, was_parked })
    }

    /// Hands it a job.
    fn give(self, job: Job) -> Handed {
        let Self { worker, was_parked } = self;
        let number = worker.take_on(job);
        if was_parked && let Some(thread) = worker.thread.get() {
            thread.unpark();
        }
        Handed { worker, number }
    }
}

/// The current thread tries this worker first from now on.
pub(crate) fn remember(handed: Handed) {
    // While the thread is being torn down there is no next call to remember it for.
    let _ = LAST.try_with(|last| last.set(Some(handed.worker)));
}

impl Worker {
    /// The job is the worker's; its number. Called by who has claimed it.
    fn take_on(&self, job: Job) -> u32 {
        *lock(&self.job) = Some(job);
        let number = self.given.load(Ordering::Relaxed).wrapping_add(1);
        self.given.store(number, Ordering::Relaxed);
        self.word.store(JOB, Ordering::Release);
        number
    }

    fn run(self: Arc<Self>) {
        let _ = self.thread.set(thread::current());
        let mut done = 0_u32;
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
            done = done.wrapping_add(1);
            self.done.0.store(done, Ordering::Release);
            if !reuse && !self.retire() {
                return;
            }
        }
    }

    /// Waits for a job; `false` once the worker has left.
    fn wait(self: &Arc<Self>) -> bool {
        let has_job = || self.word.load(Ordering::Acquire) == JOB;
        if self.spin.until(Tick::NEVER, has_job) {
            return true;
        }
        let park = |from, to| {
            let changed = self
                .word
                .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
            changed.is_ok()
        };
        if !park(IDLE, PARKED) {
            // Claimed: the job is on its way.
            while !has_job() {
                thread::yield_now();
            }
            return true;
        }
        let until = Tick::now().plus(settings::keep_alive());
        loop {
            if has_job() {
                return true;
            }
            if Clock::Real.has_come_to(until) && park(PARKED, GONE) {
                return self.retire();
            }
            parking::park_until(until);
        }
    }

    /// Leaves the pool, but not while jobs are queued; whether there is one to take.
    fn retire(self: &Arc<Self>) -> bool {
        let mut state = lock(&STATE);
        if let Some((_, job)) = state.queue.pop_first() {
            self.take_on(job);
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
        } else if let Some(claimed) = Claimed::claim(self.clone())
            && let Some((_, job)) = state.queue.pop_first()
        {
            drop(state);
            claimed.give(job);
        }
    }
}
