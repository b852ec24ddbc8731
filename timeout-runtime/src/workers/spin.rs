//! [`Spin`]: waiting for a moment before parking, where that has been worth it.
//!
//! To wake a parked thread on an idle core takes longer than many an operation, so both view of a call look for each other for a little longer
//! than a wake-up takes, which is measured whenever a worker is woken, and then park. Who spins in vain keeps a core from others: a spin that failed is not tried again for 1, 3, 7 .. 63
//! times, and one that succeeds resets that. Nobody yields while spinning, on busy cores that gives a whole time slice away.

use std::hint;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::sync::AtomicU64;
use crate::tick::{self, Tick};

use super::settings;

/// What it takes to wake a worker here.
pub(super) static WAKE_UP: WakeUp = WakeUp::new();

/// Whatever was measured, a spin lasts no longer and no shorter: a machine may have been busy with something else.
const LONGEST: Duration = Duration::from_micros(50);
const SHORTEST: Duration = Duration::from_micros(5);

/// A mean of the last times, in nanoseconds. Before there are any it is a guess.
pub(super) struct WakeUp(AtomicU64);

impl WakeUp {
    const fn new() -> Self {
        Self(AtomicU64::new(10_000))
    }

    /// A worker has woken up so long after it was told to. What took too long has waited for a core, and says nothing.
    pub(super) fn took(&self, took: Duration) {
        const WEIGHT: u64 = 8;

        if took < LONGEST {
            let mean = self.0.load(Ordering::Relaxed);
            let mean = mean - mean / WEIGHT + tick::nanos(took) / WEIGHT;
            self.0.store(mean, Ordering::Relaxed);
        }
    }

    /// How long a spin lasts at the most. The other side may have to be woken first, and then has something to do.
    fn longest_spin(&self) -> Duration {
        let wake_up = Duration::from_nanos(self.0.load(Ordering::Relaxed));
        (2 * wake_up).clamp(SHORTEST, LONGEST)
    }
}

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
        if now >= *last.get_or_insert_with(|| now.plus(WAKE_UP.longest_spin()).min(until)) {
            return is_there();
        }
    }
}

/// With one core, whoever spins keeps the other side from it.
fn has_cores() -> bool {
    static CORES: OnceLock<bool> = OnceLock::new();

    *CORES.get_or_init(|| thread::available_parallelism().is_ok_and(|cores| cores.get() > 1))
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_to_spin_does_not_even_look() {
        settings::Settings::new().spin(false).apply();
        let came = Spin::new().until(Tick::NEVER, || unreachable!("it is turned off"));
        settings::Settings::new().spin(true).apply();
        assert!(!came);
    }

    #[test]
    fn a_spin_lasts_for_two_wake_ups_within_bounds() {
        let wake_up = WakeUp::new();
        let settle_on = |took| (0..1000).for_each(|_| wake_up.took(took));
        settle_on(Duration::from_micros(12));
        let two = wake_up.longest_spin();
        assert!(two > Duration::from_micros(23) && two < Duration::from_micros(25));
        settle_on(Duration::from_secs(1));
        assert_eq!(wake_up.longest_spin(), two, "a busy machine says nothing");
        settle_on(Duration::from_micros(49));
        assert_eq!(wake_up.longest_spin(), LONGEST);
        settle_on(Duration::ZERO);
        assert_eq!(wake_up.longest_spin(), SHORTEST);
    }

    #[test]
    fn a_spin_in_vain_is_not_tried_again_at_once() {
        let spin = Spin::new();
        let mut tries = 0;
        for _ in 0..64 {
            let looks = std::cell::Cell::new(0);
            spin.until(Tick::now(), || {
                looks.set(looks.get() + 1);
                false
            });
            tries += usize::from(looks.get() > 0);
        }
        // After 1, 3, 7, 15 and 31 pauses.
        assert!(tries <= 6, "{tries}");
    }
}
