//! [`Tick`]: an instant in eight bytes, used for all deadline arithmetic.

use std::num::NonZeroU64;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::sync;

use super::coarse::Coarse;

/// The reference point of ticks, on the precise and on the coarse clock.
///
/// It maps to the middle of the range, because earlier instants exist.
static ANCHOR: LazyLock<(Instant, Coarse)> = LazyLock::new(|| {
    loop {
        let before = Instant::now();
        let coarse = Coarse::now();
        // A delay between the two readings would shift all later coarse clock readings. The coarse
        // clock lags by up to one timer interrupt, here and at each later reading, so a coarse
        // reading is off by at most one interrupt in either direction.
        if before.elapsed() < Duration::from_millis(1) {
            return (before, coarse);
        }
    }
});
const MIDDLE: Tick = Tick::of_nanos(1 << 62);

/// The maximum error of a coarse clock reading, in nanoseconds.
///
/// The timer interrupt updates the coarse clock 60 to 1000 times per second. The rest is a margin
/// for machines that handle the interrupt late.
pub(crate) const BEHIND: u64 = 100_000_000;

/// An instant in nanoseconds. Instants more than four centuries ahead saturate to never. It is not
/// zero, so an `Option` of it has eight bytes too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tick(NonZeroU64);

impl Tick {
    pub(crate) const NEVER: Self = Self(NonZeroU64::MAX);
    /// Earlier than any clock reading.
    pub(crate) const PAST: Self = Self(NonZeroU64::MIN);

    /// Reads the system's monotonic clock.
    pub(crate) fn now() -> Self {
        Self::read(Self::of(sync::now()))
    }

    /// Returns the reading, shifted by the steps that tests apply to the clock.
    fn read(tick: Self) -> Self {
        #[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
        let tick = Self::of_nanos(tick.nanos().saturating_add_signed(steps::offset()));
        tick
    }

    pub(crate) fn of(instant: Instant) -> Self {
        let (anchor, _) = *ANCHOR;
        match instant.checked_duration_since(anchor) {
            Some(after) => MIDDLE.plus(after),
            None => MIDDLE.minus_nanos(nanos(anchor - instant)),
        }
    }

    /// Reads the coarse clock, at a fraction of the cost of [`now`](Self::now).
    pub(crate) fn now_coarse() -> Self {
        let (_, anchor) = *ANCHOR;
        match anchor.elapsed_nanos() {
            Some(nanos) => Self::read(MIDDLE.plus_nanos(nanos)),
            None => Self::now(),
        }
    }

    /// Whether a coarse clock reading shows that the tick is in the future. `false` can be wrong.
    #[inline]
    pub(crate) fn is_clearly_ahead(self) -> bool {
        self.minus_nanos(BEHIND) > Self::now_coarse()
    }

    /// Converts to a number, for storage in an atomic.
    pub(crate) const fn nanos(self) -> u64 {
        self.0.get()
    }

    /// Returns `PAST` for zero.
    pub(crate) const fn of_nanos(nanos: u64) -> Self {
        match NonZeroU64::new(nanos) {
            Some(nanos) => Self(nanos),
            None => Self::PAST,
        }
    }

    pub(crate) const fn is_never(self) -> bool {
        self.nanos() == Self::NEVER.nanos()
    }

    pub(crate) fn plus(self, duration: Duration) -> Self {
        self.plus_nanos(nanos(duration))
    }

    pub(crate) const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    const fn minus_nanos(self, nanos: u64) -> Self {
        Self::of_nanos(self.nanos().saturating_sub(nanos))
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos().saturating_sub(earlier.nanos()))
    }
}

/// Converts to nanoseconds, saturating at 584 years.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(duration.subsec_nanos().into())
}

/// Moves the clock, as a faulty monotonic clock moves. For tests.
#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
pub(crate) mod steps {
    use std::sync::atomic::{AtomicI64, Ordering};

    /// In nanoseconds.
    static OFFSET: AtomicI64 = AtomicI64::new(0);

    pub(super) fn offset() -> i64 {
        OFFSET.load(Ordering::SeqCst)
    }

    pub(crate) fn step_by(nanos: i64) {
        OFFSET.fetch_add(nanos, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_the_order_and_distance_of_instants() {
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

    /// Guards against a coarse clock reading that shows a past tick as ahead.
    #[test]
    fn a_past_tick_is_not_clearly_ahead() {
        let now = Tick::now();
        assert!(!now.is_clearly_ahead() && !Tick::PAST.is_clearly_ahead());
        assert!(Tick::NEVER.is_clearly_ahead());
        assert!(now.plus(Duration::from_secs(60)).is_clearly_ahead());
    }

    #[test]
    fn ticks_out_of_range_are_never() {
        let now = Tick::now();
        assert!(now.plus(Duration::MAX).is_never());
        assert!(now.plus(Duration::from_secs(600 * 365 * 86_400)).is_never());
        assert!(Tick::NEVER.plus(Duration::from_secs(1)).is_never());
        assert!(!Tick::PAST.is_never() && Tick::PAST < now);
    }
}
