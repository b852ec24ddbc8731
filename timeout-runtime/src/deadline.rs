//! [`Deadline`]: until when. A duration comes in at the rim only.

mod env;

use std::cmp::Ordering;
use std::fmt;
use std::time::{Duration, Instant};

use crate::tick::Tick;

pub use env::InvalidDeadline;

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

    pub(crate) fn now(self) -> Tick {
        match self {
            Self::Real => Tick::now(),
            #[cfg(feature = "tokio")]
            Self::Tokio => Tick::of(tokio::time::Instant::now().into_std()),
        }
    }

    /// Whether it has come to `tick`, which costs a precise reading only if that is near.
    #[inline]
    pub(crate) fn has_reached(self, tick: Tick) -> bool {
        let is_clearly_ahead = self == Self::Real && tick.is_clearly_ahead();
        !is_clearly_ahead && self.now() >= tick
    }

    /// `tick` of this clock as `other` has it. Crossing over carries the time that is left.
    pub(crate) fn cross(self, other: Self, tick: Tick) -> Tick {
        if self == other || tick.is_never() {
            return tick;
        }
        match tick.since(self.now()) {
            Duration::ZERO => Tick::PAST,
            left => other.now().plus(left),
        }
    }

    /// Whether this clock stands apart from the system's, here and now.
    ///
    /// Only a current-thread runtime can pause its time, if at all; its clock is the system's if it lies between two readings of that, and moves.
    #[inline]
    pub(crate) fn is_virtual(self) -> bool {
        match self {
            Self::Real => false,
            #[cfg(feature = "tokio")]
            Self::Tokio => pause::is_possible() && pause::is_in_force(),
        }
    }

    /// This clock, or the system's if they are the same here and now.
    pub(crate) fn resolved(self) -> Self {
        if self.is_virtual() { self } else { Self::Real }
    }

    /// Tokio's reading, where it has one that counts: virtual time can be read only inside its runtime.
    #[cfg(feature = "tokio")]
    pub(crate) fn virtual_now() -> Option<Tick> {
        Self::Tokio.is_virtual().then(|| Self::Tokio.now())
    }

    /// The clock for a deadline made here: the executor's where that is virtual.
    fn here() -> Self {
        Self::EXECUTOR.resolved()
    }
}

/// Whether Tokio's time is paused.
#[cfg(feature = "tokio")]
mod pause {
    use std::time::Instant;

    use tokio::runtime::{Handle, RuntimeFlavor};

    /// What stands in for `tokio::time::pause` where there is none.
    struct Never;

    #[allow(dead_code)] // Where there is one.
    fn pause() -> Never {
        Never
    }

    /// What a `pause` tells by its type: whether it is Tokio's.
    trait Pause {
        const IS_TOKIOS: bool;
    }

    impl Pause for () {
        const IS_TOKIOS: bool = true;
    }

    impl Pause for Never {
        const IS_TOKIOS: bool = false;
    }

    const fn is_tokios<P: Pause>(_: fn() -> P) -> bool {
        P::IS_TOKIOS
    }

    /// Whether this build can pause it at all: only with Tokio's feature `test-util`, which is nobody's in production. Another crate's
    /// features cannot be asked for, but what they add can be found: in here the name is Tokio's if Tokio has it, else the one above.
    pub(super) const fn is_possible() -> bool {
        #[allow(unused_imports)] // Where there is none.
        #[allow(clippy::wildcard_imports)]
        // It must not be named: it may not be there.
        use tokio::time::*;

        is_tokios(pause as fn() -> _)
    }

    /// Whether the time of the runtime around this code is paused, or was and has not caught up.
    #[cold]
    pub(super) fn is_in_force() -> bool {
        Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::CurrentThread)
            && !is_the_systems(|| tokio::time::Instant::now().into_std())
    }

    fn is_the_systems(clock: impl Fn() -> Instant) -> bool {
        let before = Instant::now();
        let reading = clock();
        let after = Instant::now();
        (before..=after).contains(&reading) && {
            // It may stand still just where the system's passes by, but then it stays there.
            while Instant::now() <= after {}
            clock() > after
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
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deadline {
    at: Tick,
    clock: Clock,
}

impl Deadline {
    /// No deadline.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            at: Tick::NEVER,
            clock: Clock::Real,
        }
    }

    /// `duration` from now. What lies beyond the clock's range, more than four centuries, is [`never`](Self::never).
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        let clock = Clock::here();
        Self::on(clock, clock.now().plus(duration))
    }

    /// At `instant`, on the system's monotonic clock.
    #[must_use]
    pub fn at(instant: Instant) -> Self {
        Self::on(Clock::Real, Tick::of(instant))
    }

    /// The deadline of the call that this code runs in; [`never`](Self::never) outside any.
    #[must_use]
    pub fn current() -> Self {
        crate::frame::deadline()
    }

    /// How long is left: zero once it has passed, `None` for [`never`](Self::never).
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        (!self.at.is_never()).then(|| self.at.since(self.clock.now()))
    }

    /// Whether it has come: now or before now.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        !self.at.is_never() && self.clock.now() >= self.at
    }

    /// The earlier of the two.
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

    /// Its clock, and its time on that.
    pub(crate) fn parts(self) -> (Clock, Tick) {
        (self.clock, self.at)
    }

    /// Its time on `clock`.
    pub(crate) fn on_clock(self, clock: Clock) -> Tick {
        self.clock.cross(clock, self.at)
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
    }

    #[test]
    fn a_deadline_in_the_past_has_nothing_left() {
        let past = Deadline::at(Instant::now());
        assert!(past.has_passed());
        assert_eq!(past.remaining(), Some(Duration::ZERO));
    }

    #[test]
    fn a_deadline_ahead_has_not_passed() {
        let ahead = Deadline::after(Duration::from_secs(3_600));
        assert!(!ahead.has_passed());
        let left = ahead.remaining().expect("it comes");
        assert!((1..=3_600).contains(&left.as_secs()), "{left:?}");
    }

    #[test]
    fn a_deadline_tells_what_is_left() {
        let past = Deadline::at(Instant::now());
        assert_eq!(format!("{past:?}"), "Deadline(in 0ns)");
        assert_eq!(format!("{:?}", Deadline::never()), "Deadline(never)");
    }

    #[test]
    fn a_clock_has_come_to_what_is_not_ahead() {
        let clock = Clock::Real;
        assert!(clock.has_reached(Tick::PAST));
        assert!(clock.has_reached(Tick::now()));
        assert!(!clock.has_reached(Tick::NEVER));
        assert!(!clock.has_reached(Tick::now().plus(Duration::from_secs(3_600))));
        // Too near for a glance; on a slow machine it may have come meanwhile.
        let near = |_| {
            let near = Tick::now().plus(Duration::from_millis(90));
            (clock.has_reached(near), Tick::now() < near)
        };
        let seen = (0..100).map(near).find(|(_, is_ahead)| *is_ahead);
        assert_eq!(seen, Some((false, true)));
    }

    #[test]
    fn what_stays_on_its_clock_stays_as_it_is() {
        for tick in [Tick::PAST, Tick::now(), Tick::NEVER] {
            assert_eq!(Clock::Real.cross(Clock::Real, tick), tick);
            assert_eq!(Clock::EXECUTOR.cross(Clock::EXECUTOR, tick), tick);
        }
        assert_eq!(Clock::Real.cross(Clock::EXECUTOR, Tick::NEVER), Tick::NEVER);
    }

    #[test]
    fn never_is_later_than_everything() {
        let soon = Deadline::after(Duration::ZERO);
        assert_eq!(soon.min(Deadline::never()), soon);
        assert_eq!(Deadline::never().min(soon), soon);
        assert_eq!(Deadline::never().remaining(), None);
    }
}
