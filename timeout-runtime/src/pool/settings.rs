//! [`Settings`]: the settings of the worker pool, and the environment variables behind them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::sync::{self, AtomicU64};
use crate::threads::{self, Hook};

/// As many workers as Tokio's blocking pool may have threads.
const CAP: usize = 512;
const KEEP_ALIVE: u64 = 10_000;

static CAP_SET: AtomicUsize = AtomicUsize::new(CAP);
static KEEP_ALIVE_MS: AtomicU64 = AtomicU64::new(KEEP_ALIVE);
static STACK_SIZE: AtomicUsize = AtomicUsize::new(0);
static FRESH: AtomicBool = AtomicBool::new(false);
static PARK: AtomicBool = AtomicBool::new(false);

/// Settings of the worker pool. They hold for the whole process from `apply` on; running calls keep
/// what they started with.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::workers::Settings;
///
/// Settings::new()
///     .cap(64)
///     .keep_alive(Duration::from_secs(2))
///     .stack_size(4 << 20)
///     .apply();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "settings do nothing until `apply` is called"]
pub struct Settings {
    cap: Option<usize>,
    keep_alive: Option<Duration>,
    stack_size: Option<usize>,
    reuse: Option<bool>,
    spin: Option<bool>,
    on_thread_start: Option<OnThreadStart>,
}

#[derive(Clone)]
struct OnThreadStart(Hook);

impl fmt::Debug for OnThreadStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnThreadStart").finish_non_exhaustive()
    }
}

impl Settings {
    /// Changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The maximum number of workers, at least 1 and by default 512. A call that finds no free
    /// worker waits for one until its deadline, and is then not started.
    pub fn cap(mut self, cap: usize) -> Self {
        self.cap = Some(cap.max(1));
        self
    }

    /// How long a worker without a job stays, by default 10 seconds.
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = Some(keep_alive);
        self
    }

    /// The stack size of new workers in bytes. The default is that of the standard library: 2 MiB,
    /// or the value of the environment variable `RUST_MIN_STACK`.
    ///
    /// With the default, an operation can take and return an array of 256 KiB by value in an
    /// unoptimized build, and one of 640 KiB in an optimized build.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Whether workers are reused, by default yes. Without reuse each call gets a fresh thread,
    /// which inherits what threads inherit, such as the captured output of a test. The environment
    /// variable `TIMEOUT_WORKER_REUSE=0` does the same as `false`.
    pub fn reuse(mut self, reuse: bool) -> Self {
        self.reuse = Some(reuse);
        self
    }

    /// Whether callers and workers spin for a few microseconds before parking, by default yes.
    /// Spinning makes short calls in a row several times faster, and stops where it has not helped
    /// lately. With one core no thread spins. The environment variable `TIMEOUT_WORKER_SPIN=0` does
    /// the same as `false`.
    pub fn spin(mut self, spin: bool) -> Self {
        self.spin = Some(spin);
        self
    }

    /// A function that every thread of this crate runs at its start: each worker, and each thread
    /// that keeps deadlines or runs callbacks. It replaces the function that was set before.
    /// Threads that have been started already do not run it.
    ///
    /// It is the place to set what a thread would otherwise [inherit](crate::workers#what-a-worker-inherits), such as a priority, a
    /// signal mask or a set of processors. The thread has its name by then: `timeout-1`,
    /// `timeout-2` and so on for workers, `timeout-timer` and `timeout-deputy` for the threads that
    /// keep deadlines, `timeout-background` for those that run callbacks.
    ///
    /// The function runs outside any call. The thread does nothing else before it returns, and the
    /// first call of a worker waits for that as part of its limit. A panic ends in the function.
    /// Calls made in it may run inline; those that need a worker are not started, for
    /// [`NoWorker`](crate::Cause::NoWorker).
    ///
    /// ```
    /// use std::cell::Cell;
    /// use std::thread;
    /// use timeout_runtime::workers::Settings;
    ///
    /// thread_local! {
    ///     static IS_WORKER: Cell<bool> = const { Cell::new(false) };
    /// }
    ///
    /// Settings::new()
    ///     .on_thread_start(|| {
    ///         let thread = thread::current();
    ///         let number = thread.name().and_then(|name| name.strip_prefix("timeout-"));
    ///         IS_WORKER.set(number.is_some_and(|number| number.parse::<u32>().is_ok()));
    ///     })
    ///     .apply();
    /// ```
    ///
    /// With the crate `nix`, signals are left to the threads of the program:
    ///
    /// ```ignore
    /// use nix::sys::signal::SigSet;
    ///
    /// Settings::new()
    ///     .on_thread_start(|| SigSet::all().thread_block().expect("a valid mask"))
    ///     .apply();
    /// ```
    pub fn on_thread_start(mut self, function: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_thread_start = Some(OnThreadStart(Arc::new(function)));
        self
    }

    /// Applies the settings to the whole process.
    pub fn apply(self) {
        if let Some(cap) = self.cap {
            CAP_SET.store(cap, Ordering::Relaxed);
        }
        if let Some(keep_alive) = self.keep_alive {
            let ms = u64::try_from(keep_alive.as_millis()).unwrap_or(u64::MAX);
            KEEP_ALIVE_MS.store(ms, Ordering::Relaxed);
        }
        if let Some(bytes) = self.stack_size {
            STACK_SIZE.store(bytes, Ordering::Relaxed);
        }
        if let Some(reuse) = self.reuse {
            FRESH.store(!reuse, Ordering::Relaxed);
        }
        if let Some(spin) = self.spin {
            PARK.store(!spin, Ordering::Relaxed);
        }
        if let Some(OnThreadStart(hook)) = self.on_thread_start {
            threads::set_hook(hook);
        }
    }
}

pub(crate) fn cap() -> usize {
    CAP_SET.load(Ordering::Relaxed)
}

pub(crate) fn keep_alive() -> Duration {
    Duration::from_millis(KEEP_ALIVE_MS.load(Ordering::Relaxed))
}

pub(crate) fn stack_size() -> Option<usize> {
    match STACK_SIZE.load(Ordering::Relaxed) {
        0 => None,
        bytes => Some(bytes),
    }
}

/// Whether workers are reused.
pub(crate) fn reuse() -> bool {
    static FRESH_BY_ENVIRONMENT: Switch = Switch::new("TIMEOUT_WORKER_REUSE");

    !FRESH.load(Ordering::Relaxed) && !FRESH_BY_ENVIRONMENT.is_off()
}

/// Whether threads may spin before parking.
pub(crate) fn spin() -> bool {
    static PARK_BY_ENVIRONMENT: Switch = Switch::new("TIMEOUT_WORKER_SPIN");

    !sync::IS_MODEL && !PARK.load(Ordering::Relaxed) && !PARK_BY_ENVIRONMENT.is_off()
}

/// A setting that an environment variable turns off with the value `0`. Read once.
struct Switch {
    name: &'static str,
    is_off: OnceLock<bool>,
}

impl Switch {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            is_off: OnceLock::new(),
        }
    }

    fn is_off(&self) -> bool {
        *self
            .is_off
            .get_or_init(|| std::env::var_os(self.name).is_some_and(|value| value == "0"))
    }
}
