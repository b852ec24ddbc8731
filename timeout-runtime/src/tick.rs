//! [`Tick`]: an instant in eight bytes, on which deadlines are reckoned.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// What ticks are counted from. It is in the middle of the range: there is time before it, too.
static ANCHOR: LazyLock<Instant> = LazyLock::new(Instant::now);
const MIDDLE: u64 = 1 << 62;

/// An instant in nanoseconds. What lies beyond its range, more than four centuries ahead, is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tick(u64);

impl Tick {
    pub(crate) const NEVER: Self = Self(u64::MAX);
    /// Before every reading of any clock.
    pub(crate) const PAST: Self = Self(0);

    pub(crate) fn of(instant: Instant) -> Self {
        let anchor = *ANCHOR;
        match instant.checked_duration_since(anchor) {
            Some(after) => Self(MIDDLE).plus(after),
            None => Self(MIDDLE.saturating_sub(nanos(anchor - instant))),
        }
    }

    /// The instant, unless it is never.
    pub(crate) fn instant(self) -> Option<Instant> {
        if self.is_never() {
            return None;
        }
        if let Some(after) = self.0.checked_sub(MIDDLE) {
            return ANCHOR.checked_add(Duration::from_nanos(after));
        }
        // What no instant can say is long past all the same.
        let before = Duration::from_nanos(MIDDLE - self.0);
        Some(ANCHOR.checked_sub(before).unwrap_or(*ANCHOR))
    }

    pub(crate) const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }

    pub(crate) fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// How long after `earlier`; zero if before it.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Saturates at 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_survives_the_round_trip() {
        let now = Instant::now();
        let hour = Duration::from_secs(3600);
        for instant in [Some(now), now.checked_sub(hour), now.checked_add(hour)] {
            let instant = instant.unwrap();
            assert_eq!(Tick::of(instant).instant(), Some(instant));
        }
    }

    #[test]
    fn order_and_distance_are_those_of_instants() {
        let now = Instant::now();
        let later = now + Duration::from_nanos(1);
        assert!(Tick::of(now) < Tick::of(later));
        assert_eq!(
            Tick::of(later).since(Tick::of(now)),
            Duration::from_nanos(1)
        );
        assert_eq!(Tick::of(now).since(Tick::of(later)), Duration::ZERO);
    }

    #[test]
    fn what_is_out_of_range_is_never() {
        let now = Tick::of(Instant::now());
        assert!(now.plus(Duration::MAX).is_never());
        assert!(now.plus(Duration::from_secs(600 * 365 * 86_400)).is_never());
        assert!(Tick::NEVER.plus(Duration::from_secs(1)).is_never());
        assert!(Tick::NEVER.instant().is_none());
        assert!(Tick::PAST.instant().unwrap() <= Instant::now());
    }
}
