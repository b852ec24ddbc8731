//! [`Deadline`]: an instant on one of the clocks. Public functions convert durations to it.

mod env;

use std::cmp::Ordering;
use std::fmt;
use std::time::{Duration, Instant};

use super::{Clock, Tick};

pub use env::InvalidDeadline;

/// The instant at which a limit passes, or never.
///
/// A deadline knows its clock. A deadline created inside a Tokio runtime with paused time follows
/// that virtual time. Sync calls and workers use the system clock: there, the deadline is converted
/// by its remaining time. A deadline created on a `testing::TestClock` follows that clock.
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
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deadline {
    at: Tick,
    clock: Clock,
}

impl Deadline {
    /// Returns a deadline that never passes.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            at: Tick::NEVER,
            clock: Clock::Real,
        }
    }

    /// Returns the deadline `duration` from now.
    ///
    /// A deadline more than about four centuries ahead is [`never`](Self::never).
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        let clock = Clock::here();
        Self::on(clock, clock.now().plus(duration))
    }

    /// Returns the deadline at `instant`: a [`std::time::Instant`] on the system's monotonic clock,
    /// or, with the feature `tokio`, a `tokio::time::Instant` on Tokio's clock.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timeout_runtime::Deadline;
    ///
    /// let deadline = Deadline::at(Instant::now() + Duration::from_secs(60));
    /// assert!(!deadline.has_passed());
    /// ```
    #[must_use]
    pub fn at(instant: impl Into<Self>) -> Self {
        instant.into()
    }

    /// Returns the remaining time: zero once the deadline has passed, `None` for
    /// [`never`](Self::never).
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::Deadline;
    ///
    /// let minute = Duration::from_secs(60);
    /// let left = Deadline::after(minute).remaining();
    /// assert!(left.is_some_and(|left| left <= minute));
    /// assert_eq!(Deadline::after(Duration::ZERO).remaining(), Some(Duration::ZERO));
    /// assert_eq!(Deadline::never().remaining(), None);
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        (!self.at.is_never()).then(|| self.at.since(self.clock.now()))
    }

    /// Returns whether the deadline is now or in the past.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::Deadline;
    ///
    /// /// Adds as many rows as the time allows.
    /// fn sum(rows: &[u32], deadline: Deadline) -> u32 {
    ///     rows.iter().take_while(|_| !deadline.has_passed()).sum()
    /// }
    ///
    /// assert_eq!(sum(&[1, 2, 3], Deadline::after(Duration::from_secs(60))), 6);
    /// assert_eq!(sum(&[1, 2, 3], Deadline::after(Duration::ZERO)), 0);
    /// ```
    #[must_use]
    pub fn has_passed(&self) -> bool {
        !self.at.is_never() && self.clock.has_reached(self.at)
    }

    /// Returns the earlier of the two deadlines.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::Deadline;
    ///
    /// let request = Deadline::after(Duration::from_secs(60));
    /// let query = request.min(Deadline::after(Duration::from_secs(5)));
    /// assert!(query.remaining().is_some_and(|left| left <= Duration::from_secs(5)));
    /// assert_eq!(request.min(Deadline::after(Duration::from_secs(3600))), request);
    /// ```
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        match other.on_clock(self.clock).cmp(&self.at) {
            Ordering::Less => other,
            Ordering::Equal | Ordering::Greater => self,
        }
    }

    pub(crate) fn on(clock: Clock, at: Tick) -> Self {
        if at.is_never() {
            return Self::never();
        }
        Self { at, clock }
    }

    /// Returns the clock, and the deadline's tick on it.
    pub(crate) fn parts(self) -> (Clock, Tick) {
        (self.clock, self.at)
    }

    /// Returns the deadline's tick on `clock`.
    pub(crate) fn on_clock(self, clock: Clock) -> Tick {
        self.clock.cross(clock, self.at)
    }

    /// Whether only the deadline's own clock can tell when it passes, and that is not `clock`.
    pub(crate) fn is_apart_from(self, clock: Clock) -> bool {
        !self.at.is_never() && self.clock.is_apart_from(clock)
    }

    /// As `on_clock`, for a deadline that cancels a token above, which reaches the tokens below by
    /// itself. So the tick is never if only the clock of the deadline can tell when it passes.
    pub(crate) fn inherited_on(self, clock: Clock) -> Tick {
        if self.clock.is_apart_from(clock) {
            return Tick::NEVER;
        }
        self.on_clock(clock)
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remaining() {
            None => f.write_str("Deadline(never)"),
            Some(left) => write!(f, "Deadline(in {left:?})"),
        }
    }
}

impl From<Instant> for Deadline {
    fn from(instant: Instant) -> Self {
        Self::on(Clock::Real, Tick::of(instant))
    }
}

/// On Tokio's clock: inside a runtime whose time is paused, the deadline follows that time.
#[cfg(feature = "tokio")]
impl From<tokio::time::Instant> for Deadline {
    fn from(instant: tokio::time::Instant) -> Self {
        let clock = Clock::Tokio.resolved();
        Self::on(clock, Tick::of(instant.into_std()))
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
    }

    #[test]
    fn a_past_deadline_has_no_time_remaining() {
        let past = Deadline::at(Instant::now());
        assert!(past.has_passed());
        assert_eq!(past.remaining(), Some(Duration::ZERO));
    }

    #[test]
    fn a_future_deadline_has_not_passed() {
        let ahead = Deadline::after(Duration::from_secs(3_600));
        assert!(!ahead.has_passed());
        let left = ahead.remaining().expect("the deadline is not never");
        assert!((1..=3_600).contains(&left.as_secs()), "{left:?}");
    }

    #[test]
    fn debug_shows_the_remaining_time() {
        let past = Deadline::at(Instant::now());
        assert_eq!(format!("{past:?}"), "Deadline(in 0ns)");
        assert_eq!(format!("{:?}", Deadline::never()), "Deadline(never)");
    }

    #[test]
    fn a_clock_has_reached_every_tick_that_is_not_ahead() {
        let clock = Clock::Real;
        assert!(clock.has_reached(Tick::PAST));
        assert!(clock.has_reached(Tick::now()));
        assert!(!clock.has_reached(Tick::NEVER));
        assert!(!clock.has_reached(Tick::now().plus(Duration::from_secs(3_600))));
        // Too near for a coarse clock reading. On a slow machine it can pass in the meantime.
        let near = |_| {
            let near = Tick::now().plus(Duration::from_millis(90));
            (clock.has_reached(near), Tick::now() < near)
        };
        let seen = (0..100).map(near).find(|(_, is_ahead)| *is_ahead);
        assert_eq!(seen, Some((false, true)));
    }

    #[test]
    fn converting_to_the_same_clock_changes_nothing() {
        for tick in [Tick::PAST, Tick::now(), Tick::NEVER] {
            assert_eq!(Clock::Real.cross(Clock::Real, tick), tick);
            assert_eq!(Clock::EXECUTOR.cross(Clock::EXECUTOR, tick), tick);
        }
        assert_eq!(Clock::Real.cross(Clock::EXECUTOR, Tick::NEVER), Tick::NEVER);
    }

    #[test]
    fn never_is_later_than_any_deadline() {
        let soon = Deadline::after(Duration::ZERO);
        assert_eq!(soon.min(Deadline::never()), soon);
        assert_eq!(Deadline::never().min(soon), soon);
        assert_eq!(Deadline::never().remaining(), None);
    }
}
