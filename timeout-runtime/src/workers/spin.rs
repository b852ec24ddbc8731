//! [`Spin`]: waiting for a moment before parking, where that has been worth it.
//!
//! To wake a parked thread on an idle core takes longer than many an operation, so both sides of a call look for each other for a little longer
//! than a wake-up would take, and then park. Who spins in vain keeps a core from others: a spin that failed is not tried again for 1, 3, 7 .. 63
//! times, and one that succeeds resets that. Nobody yields while spinning, on busy cores that gives a whole time slice away.

use std::hint;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::tick::Tick;

use super::settings;

/// How long a spin lasts at the most: several times what it takes to wake a thread.
const LONGEST: Duration = Duration::from_micros(20);

/// So many times the condition is looked at between two readings of the clock.
const LOOKS: usize = 32;

/// So many failures in a row double the pause.
const MOST_FAILURES: u8 = 6;

/// Whether spinning has been worth it for one waiter, or for all calls of one function. All of it is a hint: readers and writers may race.
#[derive(Debug)]
pub(crate) struct Spin {
    failures: AtomicU8,
    /// How many times not to try again.
    pause: AtomicU8,
}

/// Another waiter has its own experience.
impl Clone for Spin {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Spin {
    pub(crate) const fn new() -> Self {
        Self {
            failures: AtomicU8::new(0),
            pause: AtomicU8::new(0),
        }
    }

    /// Waits for `is_there`, not past `until`; whether it came. Returns at once if spinning is off or has not been worth it.
    pub(crate) fn until(&self, until: Tick, is_there: impl Fn() -> bool) -> bool {
        if !settings::spin() || !has_cores() || self.pauses() {
            return false;
        }
        let came = spin(until, is_there);
        self.learn(came);
        came
    }

    fn pauses(&self) -> bool {
        match self.pause.load(Ordering::Relaxed) {
            0 => false,
            left => {
                self.pause.store(left - 1, Ordering::Relaxed);
                true
            }
        }
    }

    fn learn(&self, came: bool) {
        let failures = self.failures.load(Ordering::Relaxed);
        if came {
            if failures != 0 {
                self.failures.store(0, Ordering::Relaxed);
            }
            return;
        }
        let failures = (failures + 1).min(MOST_FAILURES);
        self.failures.store(failures, Ordering::Relaxed);
        self.pause.store((1 << failures) - 1, Ordering::Relaxed);
    }
}

fn spin(until: Tick, is_there: impl Fn() -> bool) -> bool {
    let mut last = None;
    loop {
        for _ in 0..LOOKS {
            if is_there() {
                return true;
            }
            hint::spin_loop();
        }
        let now = Tick::now();
        if now >= *last.get_or_insert_with(|| now.plus(LONGEST).min(until)) {
            return is_there();
        }
    }
}

/// With one core, whoever spins keeps the other side from it.
fn has_cores() -> bool {
    static CORES: OnceLock<bool> = OnceLock::new();

    *CORES.get_or_init(|| thread::available_parallelism().is_ok_and(|cores| cores.get() > 1))
}
