//! [`Deadline`]: until when. A duration comes in at the rim only.

use std::time::{Duration, Instant};

/// Which clock an instant was read from.
///
/// Both give [`Instant`]s, and the same ones while Tokio's clock is not virtual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Clock {
    /// The system's monotonic clock.
    Real,
    /// Tokio's, which is virtual in a runtime whose time is paused.
    #[cfg(feature = "tokio")]
    Tokio,
}

impl Clock {
    /// The clock of the calls that run on their caller's executor.
    pub(crate) const EXECUTOR: Self = {
        #[cfg(feature = "tokio")]
        {
            Self::Tokio
        }
        #[cfg(not(feature = "tokio"))]
        {
            Self::Real
        }
    };

    pub(crate) fn now(self) -> Instant {
        match self {
            Self::Real => Instant::now(),
            #[cfg(feature = "tokio")]
            Self::Tokio => tokio::time::Instant::now().into_std(),
        }
    }

    /// Whether this clock stands apart from the system's, here and now.
    ///
    /// Only a current-thread runtime can pause its time; its clock is the system's if it lies between two readings of that.
    pub(crate) fn is_virtual(self) -> bool {
        match self {
            Self::Real => false,
            #[cfg(feature = "tokio")]
            Self::Tokio => {
                use tokio::runtime::{Handle, RuntimeFlavor};

                Handle::try_current()
                    .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::CurrentThread)
                    && {
                        let before = Instant::now();
                        let reading = self.now();
                        !(before..=Instant::now()).contains(&reading)
                    }
            }
        }
    }

    /// The clock for a deadline made here: the executor's where that is virtual.
    fn here() -> Self {
        if Self::EXECUTOR.is_virtual() {
            Self::EXECUTOR
        } else {
            Self::Real
        }
    }
}

/// Until when: an instant, or never.
///
/// A deadline knows its clock. One made inside a Tokio runtime whose time is paused follows that time; where it crosses to a
/// sync call or a worker, which always use the system's clock, it carries the time that is left.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::Deadline;
///
/// let soon = Deadline::after(Duration::from_secs(1));
/// assert_eq!(soon.min(Deadline::never()), soon);
/// assert!(!soon.has_passed());
/// assert_eq!(Deadline::after(Duration::MAX), Deadline::never());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline {
    at: Option<Instant>,
    clock: Clock,
}

impl Deadline {
    /// No deadline.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            at: None,
            clock: Clock::Real,
        }
    }

    /// `duration` from now. What lies beyond the clock's range is [`never`](Self::never).
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        let clock = Clock::here();
        Self::on(clock, clock.now().checked_add(duration))
    }

    /// At `instant`, on the system's monotonic clock.
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self {
            at: Some(instant),
            clock: Clock::Real,
        }
    }

    /// The deadline of the call that this code runs in; [`never`](Self::never) outside any.
    #[must_use]
    pub fn current() -> Self {
        crate::context::inherited().0
    }

    /// How long is left: zero once it has passed, `None` for [`never`](Self::never).
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.at
            .map(|at| at.saturating_duration_since(self.clock.now()))
    }

    /// Whether it has come: now or before now.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.at.is_some_and(|at| self.clock.now() >= at)
    }

    /// The earlier of the two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        match (self.at, other.on_clock(self.clock).at) {
            (Some(mine), Some(theirs)) if theirs < mine => other,
            (None, Some(_)) => other,
            _ => self,
        }
    }

    pub(crate) const fn on(clock: Clock, at: Option<Instant>) -> Self {
        Self { at, clock }
    }

    /// The instant on `clock`. Crossing over carries the time that is left.
    pub(crate) fn on_clock(self, clock: Clock) -> Self {
        match self.at {
            Some(at) if self.clock != clock => {
                let left = at.saturating_duration_since(self.clock.now());
                Self::on(clock, clock.now().checked_add(left))
            }
            at => Self::on(clock, at),
        }
    }

    pub(crate) fn instant(&self) -> Option<Instant> {
        self.at
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Whether it has come by the reading `now` of its own clock.
    pub(crate) fn passed_at(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| now >= at)
    }

    pub(crate) fn is_never(&self) -> bool {
        self.at.is_none()
    }

    /// Later by `duration`.
    pub(crate) fn plus(self, duration: Duration) -> Self {
        Self::on(self.clock, self.at.and_then(|at| at.checked_add(duration)))
    }
}

impl From<Instant> for Deadline {
    fn from(instant: Instant) -> Self {
        Self::at(instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_durations_mean_never() {
        for duration in [Duration::MAX, Duration::from_secs(u64::MAX)] {
            assert_eq!(Deadline::after(duration), Deadline::never());
        }
        let far = Deadline::after(Duration::from_millis(u64::MAX));
        assert!(!far.has_passed());
        assert!(far.plus(Duration::MAX).is_never());
    }

    #[test]
    fn a_deadline_in_the_past_has_nothing_left() {
        let past = Deadline::at(Instant::now());
        assert!(past.has_passed());
        assert_eq!(past.remaining(), Some(Duration::ZERO));
    }

    #[test]
    fn never_is_later_than_everything() {
        let soon = Deadline::after(Duration::ZERO);
        assert_eq!(soon.min(Deadline::never()), soon);
        assert_eq!(Deadline::never().min(soon), soon);
        assert_eq!(Deadline::never().remaining(), None);
    }
}
