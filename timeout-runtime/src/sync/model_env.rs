//! What surrounds a model: its threads, a clock that goes on when the model says so, and an end.
//!
//! 1. Time stands still but for [`advance`], which wakes those whose time has come, and nobody else.
//! 2. A thread that the code under test has started, and that nobody would ever wake again, ends where it is parked once the model's
//!    scenario is over. One that is waited for before is found out: loom and shuttle say that all threads are blocked.
//! 3. A wake-up is never lost and may come too early, as with `std`.

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
    /// Waits until notified, for `longest` at most. It may return early.
    pub(crate) fn wait<'a, L: Lock>(
        &self,
        mutex: &'a L,
        guard: L::Guard<'a>,
        longest: Option<Duration>,
    ) -> L::Guard<'a> {
        *self.0.lock().unwrap() = Some(thread::current());
        drop(guard);
        // A notification from here on is kept by the thread until it parks.
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
    /// Those that the code under test has started.
    started: StdMutex<Vec<native::JoinHandle<()>>>,
    /// How many starts of threads are still to fail.
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

/// Time goes on.
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

/// No thread can be started, so many times.
pub(crate) fn refuse_threads(times: usize) {
    ENV.refusals.store(times, SeqCst);
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap()
}

/// Runs `scenario` in every order, with so many preemptions at the most: threads are switched besides wherever one has to wait.
#[cfg(timeout_loom)]
pub(crate) fn check(preemptions: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound.get_or_insert(preemptions);
    model.check(move || {
        scenario();
        end();
    });
}

/// Runs `scenario` in so many random orders; in the one that the environment variable `TIMEOUT_SCHEDULE` names, if there is one.
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
