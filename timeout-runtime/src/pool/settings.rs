//! [`Settings`]: the settings of the worker pool, and the environment variables behind them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::sync::{self, AtomicU64};

/// As many workers as Tokio's blocking pool may have threads.
const CAP: usize = 512;
const KEEP_ALIVE: u64 = 10_000;

static CAP_SET: AtomicUsize = AtomicUsize::new(CAP);
static KEEP_ALIVE_MS: AtomicU64 = AtomicU64::new(KEEP_ALIVE);
static STACK_SIZE: AtomicUsize = AtomicUsize::new(0);
static FRESH: AtomicBool = AtomicBool::new(false);
static PARK: AtomicBool = AtomicBool::new(false);

/// The settings of the worker pool. They apply to the whole process from [`apply`](Self::apply) on;
/// running calls keep the settings that they started with.
///
/// Set the fields that you want to change, and take the others from [`current`](Self::current).
/// Later versions can add fields; `..Settings::current()` keeps such code compiling.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::workers::Settings;
///
/// Settings {
///     cap: 64,
///     keep_alive: Duration::from_secs(2),
///     stack_size: Some(4 << 20),
///     ..Settings::current()
/// }
/// .apply();
/// assert_eq!(Settings::current().cap, 64);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "settings do nothing until `apply` is called"]
pub struct Settings {
    /// The maximum number of workers, at least 1 and by default 512. A call that finds no free
    /// worker waits for one until its deadline, and is then not started.
    pub cap: usize,
    /// How long a worker without a job stays, in whole milliseconds. The default is 10 seconds.
    pub keep_alive: Duration,
    /// The stack size of new workers in bytes. The default, `None`, is that of the standard
    /// library: 2 MiB, or the value of the environment variable `RUST_MIN_STACK`.
    ///
    /// With the default, an operation can take and return an array of 256 KiB by value in an
    /// unoptimized build, and one of 640 KiB in an optimized build.
    pub stack_size: Option<usize>,
    /// Whether workers are reused, by default yes. Without reuse each call gets a fresh thread,
    /// which inherits what threads inherit, such as the captured output of a test. The environment
    /// variable `TIMEOUT_WORKER_REUSE=0` turns reuse off and overrides this field.
    pub reuse: bool,
    /// Whether callers and workers spin for a few microseconds before parking, by default yes.
    /// Spinning makes short calls in a row several times faster, and stops where it has not helped
    /// lately. With one core no thread spins. The environment variable `TIMEOUT_WORKER_SPIN=0`
    /// turns spinning off and overrides this field.
    pub spin: bool,
}

impl Settings {
    /// Returns the settings that apply now: the defaults, or those that were applied last. A
    /// setting that an environment variable turns off is `false`.
    pub fn current() -> Self {
        Self {
            cap: cap(),
            keep_alive: keep_alive(),
            stack_size: stack_size(),
            reuse: reuse(),
            spin: spin(),
        }
    }

    /// Applies all fields to the whole process.
    ///
    /// Two threads that change settings at the same time can undo each other's change.
    pub fn apply(self) {
        let keep_alive = u64::try_from(self.keep_alive.as_millis()).unwrap_or(u64::MAX);
        CAP_SET.store(self.cap.max(1), Ordering::Relaxed);
        KEEP_ALIVE_MS.store(keep_alive, Ordering::Relaxed);
        STACK_SIZE.store(self.stack_size.unwrap_or(0), Ordering::Relaxed);
        FRESH.store(!self.reuse, Ordering::Relaxed);
        PARK.store(!self.spin, Ordering::Relaxed);
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
