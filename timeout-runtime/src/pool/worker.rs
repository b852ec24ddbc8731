//! [`Worker`]: one thread of the pool, and the word that holds its state.
//!
//! ```text
//!              claim            assign             take
//!   idle ──┬─────────► claimed ─────────► job ────────► busy
//!    ▲ │   │                                             │
//!    │ ▼   │                                             │
//!  (parked)┘ leave (idle for too long) ──► gone          │
//!    ▲                                                   │
//!    └─────────────────── park_idle ─────────────────────┘
//! ```
//!
//! 1. Only a thread that has claimed a worker, by the transition from *idle* or *parked*, assigns
//!    it a job; only the worker takes the job. So a worker that leaves is never assigned one. A
//!    parked worker is unparked; an idle one still reads its state.
//! 2. A caller remembers its last worker and tries it first: calls in a row touch no shared list.
//! 3. Everything touched when a job changes hands shares one cache line: moving a line to another
//!    core takes longer than the work done with it there.
//! 4. A worker counts assigned and finished jobs, the finished ones on a cache line of their own,
//!    so a caller can spin on it without disturbing the worker. The count is a hint: the word of
//!    the call decides.

use std::cell::Cell;
use std::sync::Arc;

use crate::event::WorkerName;
use crate::sync::thread;
use crate::sync::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, Mutex, Ordering, OwnLine, const_fn, lock,
};
use crate::threads::parking::Parker;
use crate::time::Clock;
use crate::time::Tick;
use crate::unwind;

use super::spin::{Spin, WAKE_UP};
use super::{Job, Pool, settings};

const IDLE: u8 = 0;
const PARKED: u8 = 1;
const CLAIMED: u8 = 2;
const JOB: u8 = 3;
const BUSY: u8 = 4;
const GONE: u8 = 5;

/// For one in so many jobs the caller parks without spinning: two threads that spin for each other
/// must not keep all others from their cores.
const STREAK: u32 = 256;

pub(crate) struct Worker<J> {
    slot: OwnLine<JobSlot<J>>,
    done: OwnLine<AtomicU32>,
    pub(super) name: WorkerName,
    /// Whether the worker spins before it parks.
    spin: Spin,
    parker: Parker,
    /// When it was last unparked, to measure a wake-up.
    unparked: AtomicU64,
}

/// Where a job changes hands.
struct JobSlot<J> {
    word: AtomicU8,
    /// Whether the worker is in the pool's list of idle ones.
    listed: AtomicBool,
    /// How many jobs it was assigned. Written by the thread that has claimed the worker, or by the
    /// worker itself when it takes a queued job.
    given: AtomicU32,
    job: Mutex<Option<J>>,
}

impl<J: Job> Worker<J> {
    /// A worker that begins with `job`.
    pub(super) fn new(name: WorkerName, job: J) -> Self {
        let slot = JobSlot {
            word: AtomicU8::new(JOB),
            listed: AtomicBool::new(false),
            given: AtomicU32::new(1),
            job: Mutex::new(Some(job)),
        };
        Self {
            slot: OwnLine(slot),
            done: OwnLine(AtomicU32::new(0)),
            name,
            spin: Spin::new(),
            parker: Parker::new(),
            unparked: AtomicU64::new(Tick::NEVER.nanos()),
        }
    }

    fn slot(&self) -> &JobSlot<J> {
        let OwnLine(slot) = &self.slot;
        slot
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.slot().word.load(Ordering::Relaxed), IDLE | PARKED)
    }

    /// Assigns a job and returns its number. Called by the thread that has claimed the worker, or
    /// by the worker itself when it was about to leave.
    pub(super) fn assign(&self, job: J) -> u32 {
        let slot = self.slot();
        *lock(&slot.job) = Some(job);
        let number = slot.given.load(Ordering::Relaxed).wrapping_add(1);
        slot.given.store(number, Ordering::Relaxed);
        slot.word.store(JOB, Ordering::Release);
        number
    }

    /// Takes the assigned job, if it was not taken.
    pub(super) fn take_job(&self) -> Option<J> {
        lock(&self.slot().job).take()
    }

    /// The worker can be claimed from here on. Returns whether it is listed; if not, it has to list
    /// itself.
    pub(super) fn declare_idle(&self) -> bool {
        let slot = self.slot();
        slot.word.swap(IDLE, Ordering::SeqCst);
        slot.listed.load(Ordering::SeqCst)
    }

    /// Marks the worker as listed. Called under the lock of the pool.
    pub(super) fn enlist(&self) {
        self.slot().listed.store(true, Ordering::SeqCst);
    }

    /// Marks the worker as not listed. Called under the lock of the pool.
    pub(super) fn delist(&self) {
        self.slot().listed.swap(false, Ordering::SeqCst);
    }

    /// The worker leaves: it cannot be claimed from here on.
    pub(super) fn go(&self) {
        self.slot().word.store(GONE, Ordering::SeqCst);
    }

    /// The loop of the thread.
    pub(super) fn run(self: Arc<Self>, pool: &Pool<J>) {
        let mut done = 0_u32;
        while self.wait(pool) {
            self.slot().word.store(BUSY, Ordering::Relaxed);
            let job = self.take_job();
            let reuse = settings::reuse();
            if let Some(job) = job {
                let mut free = !reuse;
                unwind::contain(|| {
                    job.run(self.name, &mut || {
                        if !std::mem::replace(&mut free, true) {
                            pool.park_idle(&self);
                        }
                    });
                });
                if !free {
                    pool.park_idle(&self);
                }
            }
            done = done.wrapping_add(1);
            self.done.0.store(done, Ordering::Release);
            if !reuse && !pool.retire(&self) {
                return;
            }
        }
    }

    /// Waits for a job. Returns `false` once the worker has left.
    fn wait(self: &Arc<Self>, pool: &Pool<J>) -> bool {
        if self.spin.until(Tick::NEVER, || self.has_job()) {
            return true;
        }
        let park = |from, to| {
            let word = &self.slot().word;
            word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        };
        if !park(IDLE, PARKED) {
            return self.wait_as_claimed();
        }
        let until = Tick::now().plus(settings::keep_alive());
        let mut slept = false;
        while !self.has_job() {
            if !Clock::Real.has_reached(until) {
                self.parker.park_until(until);
                slept = true;
            } else if park(PARKED, GONE) {
                return pool.retire(self);
            } else {
                return self.wait_as_claimed();
            }
        }
        if slept {
            let unparked = Tick::of_nanos(self.unparked.load(Ordering::Relaxed));
            WAKE_UP.took(Tick::now().since(unparked));
        }
        true
    }

    /// Waits for a job of the thread that has claimed this worker.
    fn wait_as_claimed(&self) -> bool {
        while !self.has_job() {
            thread::yield_now();
        }
        true
    }

    fn has_job(&self) -> bool {
        self.slot().word.load(Ordering::Acquire) == JOB
    }
}

/// The worker of the last job of one thread, in a thread-local variable. A thread tries it first:
/// calls in a row touch no shared list.
pub(crate) struct LastWorker<J>(Cell<Option<Arc<Worker<J>>>>);

impl<J: Job> LastWorker<J> {
    const_fn! {
        pub(crate) fn none() -> Self {
            Self(Cell::new(None))
        }
    }

    /// Makes the worker that has run this job the last one.
    pub(crate) fn set(&self, handed: Handed<J>) {
        self.0.set(Some(handed.worker));
    }

    /// Moves the worker out.
    pub(crate) fn take(&self) -> Self {
        Self(Cell::new(self.0.take()))
    }

    pub(super) fn claim(self) -> Option<Claimed<J>> {
        self.0.into_inner().and_then(Claimed::claim)
    }
}

/// A worker that no other thread can assign a job.
pub(super) struct Claimed<J> {
    worker: Arc<Worker<J>>,
    was_parked: bool,
}

impl<J: Job> Claimed<J> {
    pub(super) fn claim(worker: Arc<Worker<J>>) -> Option<Self> {
        let take = |from| {
            let word = &worker.slot().word;
            word.compare_exchange(from, CLAIMED, Ordering::SeqCst, Ordering::SeqCst)
        };
        let was_parked = match take(IDLE) {
            Ok(_) => false,
            Err(PARKED) => take(PARKED).is_ok().then_some(true)?,
            Err(_) => return None,
        };
        Some(Self { worker, was_parked })
    }

    /// Assigns the worker a job.
    pub(super) fn give(self, job: J) -> Handed<J> {
        let Self { worker, was_parked } = self;
        if was_parked {
            worker
                .unparked
                .store(Tick::now().nanos(), Ordering::Relaxed);
        }
        let number = worker.assign(job);
        if was_parked {
            worker.parker.unpark();
        }
        Handed { worker, number }
    }
}

/// A worker with an assigned job, and the number of that job.
pub(crate) struct Handed<J> {
    worker: Arc<Worker<J>>,
    number: u32,
}

impl<J: Job> Handed<J> {
    /// The job that `worker` has begun with.
    pub(super) fn first(worker: Arc<Worker<J>>) -> Self {
        Self { worker, number: 1 }
    }

    /// Whether the worker has finished the job.
    fn is_done(&self) -> bool {
        let done = self.worker.done.0.load(Ordering::Acquire);
        // It may have been assigned further jobs since.
        done.wrapping_sub(self.number) < u32::MAX / 2
    }

    /// Spins until the worker has finished the job, if spinning has helped lately. Returns `false`
    /// if it has not finished.
    pub(crate) fn spin(&self, spin: &Spin, until: Tick) -> bool {
        self.number % STREAK != 0 && spin.until(until, || self.is_done())
    }
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;

    /// As a constant in the library, this assertion could break builds with randomized layouts.
    #[test]
    fn the_place_where_a_job_changes_hands_fits_in_a_cache_line() {
        // The size of the jobs of calls, which have a test of it.
        assert!(size_of::<JobSlot<[std::num::NonZeroUsize; 6]>>() <= 64);
    }
}
