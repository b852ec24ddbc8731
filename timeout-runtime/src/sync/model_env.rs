//! The environment of a model: its threads, a virtual clock, and the end of the scenario.
//!
//! 1. Only [`advance`] moves the clock. It wakes exactly the threads whose park time has passed.
//! 2. After the scenario, threads that the code under test started end where they are parked. If
//!    the scenario itself waits for a thread that is never woken, loom or shuttle reports a
//!    deadlock.
//! 3. As in `std`, a wake-up is never lost and can be spurious.

use std::sync::atomic::{AtomicBool as Flag, AtomicUsize, Ordering::SeqCst};
use std::sync::{LazyLock, Mutex as StdMutex};
use std::time::{Duration, Instant};

#[cfg(timeout_loom)]
use loom::{sync::atomic::AtomicU64, thread as native};
#[cfg(timeout_shuttle)]
use shuttle::{sync::atomic::AtomicU64, thread as native};

use super::{Lock, Mutex, lazy_static, lock};

pub(crate) mod thread;

/// A condition variable on which one thread waits at a time.
#[derive(Default)]
pub(crate) struct Condvar(StdMutex<Option<thread::Thread>>);

impl Condvar {
    /// Waits until notified, for at most `longest`. May return early.
    pub(crate) fn wait<'a, L: Lock>(
        &self,
        mutex: &'a L,
        guard: L::Guard<'a>,
        longest: Option<Duration>,
    ) -> L::Guard<'a> {
        *self.0.lock().unwrap() = Some(thread::current());
        drop(guard);
        // The thread keeps a notification from here on until it parks.
        match longest {
            None => thread::park(),
            Some(longest) => thread::park_timeout(longest),
        }
        lock(mutex)
    }

    pub(crate) fn notify_one(&self) {
        let thread = self.0.lock().unwrap().clone();
        if let Some(thread) = thread {
            thread.unpark();
        }
    }
}

struct ModelEnv {
    /// In nanoseconds from `START`.
    now: AtomicU64,
    threads: Mutex<Vec<thread::Thread>>,
    /// The threads that the code under test has started.
    started: StdMutex<Vec<native::JoinHandle<()>>>,
    /// The number of thread starts that are still to fail.
    refusals: AtomicUsize,
    is_over: Flag,
}

lazy_static! {
    static ref ENV: ModelEnv = ModelEnv {
        now: AtomicU64::new(0),
        threads: Mutex::new(Vec::new()),
        started: StdMutex::default(),
        refusals: AtomicUsize::new(0),
        is_over: Flag::new(false),
    };
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(crate) fn now() -> Instant {
    let now = ENV.now.load(SeqCst);
    thread::current().has_seen(now);
    *START + Duration::from_nanos(now)
}

/// As `now`. In loom, a plain load can return an old time, and this cannot.
pub(crate) fn latest() -> Instant {
    *START + Duration::from_nanos(ENV.now.fetch_add(0, SeqCst))
}

/// Advances the clock, and wakes the threads whose park time has passed.
pub(crate) fn advance(by: Duration) {
    let by = nanos(by);
    let now = ENV.now.fetch_add(by, SeqCst) + by;
    let threads = lock(&ENV.threads).clone();
    for thread in threads {
        if thread.wakes_by(now) {
            thread.unpark();
        }
    }
}

/// Makes the next `times` thread starts fail.
pub(crate) fn refuse_threads(times: usize) {
    ENV.refusals.store(times, SeqCst);
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap()
}

/// Runs `scenario` in all orders with at most `preemptions` preemptions.
///
/// A switch at a blocking operation does not count as a preemption.
#[cfg(timeout_loom)]
pub(crate) fn check(preemptions: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound.get_or_insert(preemptions);
    model.check(move || {
        scenario();
        end();
    });
}

/// Runs `scenario` in many random orders, or only in the order in `TIMEOUT_SCHEDULE` if that
/// environment variable is set.
#[cfg(timeout_shuttle)]
pub(crate) fn check(_preemptions: usize, scenario: impl Fn() + Send + Sync + 'static) {
    const SCHEDULES: usize = 5_000;

    let scenario = move || {
        scenario();
        end();
    };
    match std::env::var("TIMEOUT_SCHEDULE") {
        Ok(schedule) => shuttle::replay(scenario, &schedule),
        Err(_) => shuttle::check_random(scenario, SCHEDULES),
    }
}

fn end() {
    ENV.is_over.store(true, SeqCst);
    loop {
        let threads = std::mem::take(&mut *lock(&ENV.threads));
        threads.iter().for_each(thread::Thread::unpark);
        let started = std::mem::take(&mut *lock(&ENV.started));
        if threads.is_empty() && started.is_empty() {
            return;
        }
        for thread in started {
            thread.join().unwrap();
        }
    }
}
