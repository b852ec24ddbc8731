//! [`Spin`]: spins adaptively for a few microseconds before parking.
//!
//! Waking a parked thread on an idle core takes longer than many operations. So both sides of a
//! call spin for up to twice the time of a wake-up before parking. That time is measured whenever a
//! worker wakes up. A spin that fails takes a core from other threads, so it is not repeated for
//! the next 1, 3, 7, up to 63 waits; a spin that succeeds resets that. A spinning thread does not
//! yield: on busy cores that would give away a whole time slice.

use std::hint;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::sync::AtomicU64;
use crate::time::{Tick, tick};

use super::settings;

/// How long it takes to wake a worker on this machine.
pub(super) static WAKE_UP: WakeUp = WakeUp::new();

/// Bounds of a spin: on a busy machine, a measured wake-up says little.
const LONGEST: Duration = Duration::from_micros(50);
const SHORTEST: Duration = Duration::from_micros(5);

/// A moving average in nanoseconds. It starts with a guess.
pub(super) struct WakeUp(AtomicU64);

impl WakeUp {
    const fn new() -> Self {
        Self(AtomicU64::new(10_000))
    }

    /// Records how long a worker took to wake up. A worker that took too long has waited for a
    /// core, which says nothing about a wake-up.
    pub(super) fn took(&self, took: Duration) {
        const WEIGHT: u64 = 8;

        if took < LONGEST {
            let mean = self.0.load(Ordering::Relaxed);
            let mean = mean - mean / WEIGHT + tick::nanos(took) / WEIGHT;
            self.0.store(mean, Ordering::Relaxed);
        }
    }

    /// The longest spin: the other side may have to wake up first, and then has work to do.
    fn longest_spin(&self) -> Duration {
        let wake_up = Duration::from_nanos(self.0.load(Ordering::Relaxed));
        (2 * wake_up).clamp(SHORTEST, LONGEST)
    }
}

/// How often the condition is read between two clock readings.
const LOOKS: usize = 32;

/// How many failures in a row double the pause.
const MOST_FAILURES: u8 = 6;

/// Whether spinning has helped, for one worker or for all calls of one function. A hint only: reads
/// and writes may race.
#[derive(Debug)]
pub(crate) struct Spin {
    failures: AtomicU8,
    /// How many waits are left that do not spin.
    pause: AtomicU8,
}

/// A clone starts without experience.
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

    /// Spins until `is_there` holds, not past `until`. Returns `false` if it does not hold, or if
    /// spinning is off or has not helped lately.
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

/// With one core, a spinning thread would keep the other side from running.
fn has_cores() -> bool {
    static CORES: OnceLock<bool> = OnceLock::new();

    *CORES.get_or_init(|| thread::available_parallelism().is_ok_and(|cores| cores.get() > 1))
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;
    use crate::pool::Settings;

    #[test]
    fn a_spin_that_is_turned_off_does_not_read_the_condition() {
        Settings {
            spin: false,
            ..Settings::current()
        }
        .apply();
        let came = Spin::new().until(Tick::NEVER, || unreachable!("it is turned off"));
        Settings {
            spin: true,
            ..Settings::current()
        }
        .apply();
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
