//! [`Tick`]: an instant in eight bytes, on which deadlines are reckoned.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::sync;

mod coarse;

use coarse::Coarse;

/// What ticks are counted from, on both clocks. It is in the middle of the range: there is time before it, too.
static ANCHOR: LazyLock<(Instant, Coarse)> = LazyLock::new(|| {
    loop {
        let before = Instant::now();
        let coarse = Coarse::now();
        // A thread that was held up between the two would put every glance off by that. As it is, the coarse clock is behind by more or less now than it
        // will be then, so a glance is off by one interrupt at most, either way.
        if before.elapsed() < Duration::from_millis(1) {
            return (before, coarse);
        }
    }
});
const MIDDLE: u64 = 1 << 62;

/// How far a glance may be off. What is glanced at is set by the timer interrupt, some 60 to 1000 times a second; the
/// rest is for a machine that is slow to serve it.
pub(crate) const BEHIND: u64 = 100_000_000;

/// An instant in nanoseconds. What lies beyond its range, more than four centuries ahead, is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tick(u64);

impl Tick {
    pub(crate) const NEVER: Self = Self(u64::MAX);
    /// Before every reading of any clock.
    pub(crate) const PAST: Self = Self(0);

    /// Now, by the system's monotonic clock.
    pub(crate) fn now() -> Self {
        Self::read(Self::of(sync::now()))
    }

    /// A reading as it is, or by a clock that tests have stepped.
    fn read(tick: Self) -> Self {
        #[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
        let tick = steps::shift(tick);
        tick
    }

    pub(crate) fn of(instant: Instant) -> Self {
        let (anchor, _) = *ANCHOR;
        match instant.checked_duration_since(anchor) {
            Some(after) => Self(MIDDLE).plus(after),
            None => Self(MIDDLE.saturating_sub(nanos(anchor - instant))),
        }
    }

    /// About now, for a fraction of the cost: what the timer interrupt has left in memory.
    pub(crate) fn now_coarse() -> Self {
        let (_, anchor) = *ANCHOR;
        match anchor.elapsed_nanos() {
            Some(nanos) => Self::read(Self(MIDDLE.saturating_add(nanos))),
            None => Self::now(),
        }
    }

    /// Whether it is so far ahead of the system's clock that a glance tells. `false` says nothing: read the clock.
    #[inline]
    pub(crate) fn is_clearly_ahead(self) -> bool {
        self.0.saturating_sub(BEHIND) > Self::now_coarse().0
    }

    /// For an atomic place.
    pub(crate) const fn nanos(self) -> u64 {
        self.0
    }

    pub(crate) const fn of_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub(crate) const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }

    pub(crate) fn plus(self, duration: Duration) -> Self {
        self.plus_nanos(nanos(duration))
    }

    pub(crate) const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// How long after `earlier`; zero if before it.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Saturates at 584 years.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(duration.subsec_nanos().into())
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod steps;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_distance_are_those_of_instants() {
        let now = Instant::now();
        for away in [Duration::from_nanos(1), Duration::from_secs(3600)] {
            let later = now + away;
            assert!(Tick::of(now) < Tick::of(later));
            assert_eq!(Tick::of(later).since(Tick::of(now)), away);
            assert_eq!(Tick::of(now).since(Tick::of(later)), Duration::ZERO);
            if let Some(earlier) = now.checked_sub(away) {
                assert_eq!(Tick::of(now).since(Tick::of(earlier)), away);
            }
        }
    }

    /// Guards against a glance that takes for far what has come.
    #[test]
    fn what_has_come_is_not_far() {
        let now = Tick::now();
        assert!(!now.is_clearly_ahead() && !Tick::PAST.is_clearly_ahead());
        assert!(Tick::NEVER.is_clearly_ahead());
        assert!(now.plus(Duration::from_secs(60)).is_clearly_ahead());
    }

    #[test]
    fn what_is_out_of_range_is_never() {
        let now = Tick::now();
        assert!(now.plus(Duration::MAX).is_never());
        assert!(now.plus(Duration::from_secs(600 * 365 * 86_400)).is_never());
        assert!(Tick::NEVER.plus(Duration::from_secs(1)).is_never());
        assert!(!Tick::PAST.is_never() && Tick::PAST < now);
    }
}
