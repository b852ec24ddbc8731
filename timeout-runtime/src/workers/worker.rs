//! One worker: a thread that is woken by name, and the word that says what it is at.
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
//! 2. A caller remembers the worker that it used last and tries it first: calls in a row touch no shared list.
//! 3. What is touched where a job changes hands is together on one line of memory: to move a line to another core takes longer than all that is
//!    done with it there.
//! 4. A worker counts the jobs it was given and those it is done with, the latter on a line of memory of their own: a caller may spin on it
//!    and disturbs nobody. It is a hint and no more, the verdict is in the call's own word.

use std::cell::Cell;
use std::sync::Arc;

use crate::deadline::Clock;
use crate::event::WorkerName;
use crate::parking::Parker;
use crate::sync::thread;
use crate::sync::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, Mutex, Ordering, const_thread_local, lock,
};
use crate::tick::Tick;
use crate::unwind;

use super::pool::Pool;
use super::spin::{Spin, WAKE_UP};
use super::{Job, settings};

const IDLE: u8 = 0;
const PARKED: u8 = 1;
const CLAIMED: u8 = 2;
const JOB: u8 = 3;
const BUSY: u8 = 4;
const GONE: u8 = 5;

/// For one of so many jobs of a worker its caller parks at once: two that spin for each other must not keep all others from their cores.
const STREAK: u32 = 256;

/// What others poll, or take over, while its neighbours are written to.
#[repr(align(128))]
struct OwnLine<T>(T);

pub(super) struct Worker {
    slot: OwnLine<JobSlot>,
    done: OwnLine<AtomicU32>,
    pub(super) name: WorkerName,
    /// For its own waits.
    spin: Spin,
    parker: Parker,
    /// When it was unparked last. Others want to know how long that takes.
    unparked: AtomicU64,
}

/// Where a job changes hands.
struct JobSlot {
    word: AtomicU8,
    /// Whether the worker is in the pool's list of idle ones.
    listed: AtomicBool,
    /// How many jobs it was given; written by who has claimed it, or by itself when it stays for a queued one.
    given: AtomicU32,
    job: Mutex<Option<Job>>,
}

impl Worker {
    /// One that begins with `job`.
    pub(super) fn new(name: WorkerName, job: Job) -> Self {
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

    fn slot(&self) -> &JobSlot {
        let OwnLine(slot) = &self.slot;
        slot
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.slot().word.load(Ordering::Relaxed), IDLE | PARKED)
    }

    /// The job is the worker's; its number. Called by who has claimed it, or by the worker itself when it was about to leave.
    pub(super) fn assign(&self, job: Job) -> u32 {
        let slot = self.slot();
        *lock(&slot.job) = Some(job);
        let number = slot.given.load(Ordering::Relaxed).wrapping_add(1);
        slot.given.store(number, Ordering::Relaxed);
        slot.word.store(JOB, Ordering::Release);
        number
    }

    /// The job that it was given and has not taken.
    pub(super) fn take_job(&self) -> Option<Job> {
        lock(&self.slot().job).take()
    }

    /// From here on it can be claimed. Whether it is listed, or whoever has taken it off the list has yet to try the claim.
    pub(super) fn declare_idle(&self) -> bool {
        let slot = self.slot();
        slot.word.swap(IDLE, Ordering::SeqCst);
        slot.listed.load(Ordering::SeqCst)
    }

    /// It is put into the list, under the pool's lock.
    pub(super) fn enlist(&self) {
        self.slot().listed.store(true, Ordering::SeqCst);
    }

    /// It was taken off the list, under the pool's lock.
    pub(super) fn delist(&self) {
        self.slot().listed.swap(false, Ordering::SeqCst);
    }

    /// It leaves: from here on it cannot be claimed.
    pub(super) fn go(&self) {
        self.slot().word.store(GONE, Ordering::SeqCst);
    }

    /// The thread's life.
    pub(super) fn run(self: Arc<Self>, pool: &Pool) {
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

    /// Waits for a job; `false` once the worker has left.
    fn wait(self: &Arc<Self>, pool: &Pool) -> bool {
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

    /// Waits for a job that is on its way.
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

const_thread_local! {
    static LAST: Cell<Option<Arc<Worker>>> = Cell::new(None);
}

/// A worker that nobody else can hand a job.
pub(super) struct Claimed {
    worker: Arc<Worker>,
    was_parked: bool,
}

impl Claimed {
    /// The worker that the current thread has used last, if it can be claimed.
    pub(super) fn last() -> Option<Self> {
        let last = LAST.try_with(Cell::take).ok().flatten();
        last.and_then(Self::claim)
    }

    pub(super) fn claim(worker: Arc<Worker>) -> Option<Self> {
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

    /// Hands it a job.
    pub(super) fn give(self, job: Job) -> Handed {
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

/// A worker that has a job, and the job's number among all it was given.
pub(crate) struct Handed {
    worker: Arc<Worker>,
    number: u32,
}

impl Handed {
    /// The job that `worker` has begun with.
    pub(super) fn first(worker: Arc<Worker>) -> Self {
        Self { worker, number: 1 }
    }

    /// Whether the worker is done with the job.
    fn is_done(&self) -> bool {
        let done = self.worker.done.0.load(Ordering::Acquire);
        // Others may have used it since.
        done.wrapping_sub(self.number) < u32::MAX / 2
    }

    /// Waits for a moment for the worker to be done with the job, if that has been worth it lately; `false` if it was not done.
    pub(crate) fn spin(&self, spin: &Spin, until: Tick) -> bool {
        self.number % STREAK != 0 && spin.until(until, || self.is_done())
    }
}

/// The current thread tries this worker first from now on.
pub(crate) fn remember(handed: Handed) {
    // While the thread is being torn down there is no next call to remember it for.
    let _ = LAST.try_with(|last| last.set(Some(handed.worker)));
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;

    /// As a constant in the library, this assertion could break builds with randomized layouts.
    #[test]
    fn the_place_where_a_job_changes_hands_fits_in_a_cache_line() {
        assert!(size_of::<JobSlot>() <= 64);
    }
}
