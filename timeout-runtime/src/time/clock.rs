//! [`Clock`]: the system's clock, Tokio's clock, which can be virtual, or a test clock.

use std::time::{Duration, SystemTime};

#[cfg(feature = "test-util")]
use super::test_clock::{self, ClockId};
use super::{Order, Tick};

/// The clock of an instant.
///
/// The first two clocks read [`Instant`]s. They agree unless Tokio's clock is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Clock {
    /// The system's monotonic clock.
    Real,
    /// Tokio's clock, which is virtual in a runtime whose time is paused.
    #[cfg(feature = "tokio")]
    Tokio,
    /// A clock of `testing::TestClock`.
    #[cfg(feature = "test-util")]
    Test(ClockId),
}

impl Clock {
    /// The clock of calls that run on their caller's executor.
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

    /// The clock of blocking code here: the test clock of this thread, or the system's clock.
    #[inline]
    pub(crate) fn of_thread() -> Self {
        Self::test_clock().unwrap_or(Self::Real)
    }

    /// The clock of a call that starts here on its caller's executor. It may still have to be
    /// resolved.
    #[inline]
    pub(crate) fn of_task() -> Self {
        Self::test_clock().unwrap_or(Self::EXECUTOR)
    }

    /// The test clock of this thread.
    #[inline]
    fn test_clock() -> Option<Self> {
        #[cfg(feature = "test-util")]
        {
            test_clock::current_clock().map(Self::Test)
        }
        #[cfg(not(feature = "test-util"))]
        {
            None
        }
    }

    pub(crate) fn now(self) -> Tick {
        match self {
            Self::Real => Tick::now(),
            #[cfg(feature = "tokio")]
            Self::Tokio => Tick::of(tokio::time::Instant::now().into_std()),
            #[cfg(feature = "test-util")]
            Self::Test(clock) => clock.now(),
        }
    }

    /// The timestamp of an event now.
    pub(crate) fn system_time(self) -> SystemTime {
        match self {
            #[cfg(feature = "test-util")]
            Self::Test(clock) => clock.system_time(),
            _ => SystemTime::now(),
        }
    }

    /// The place of an alarm among those of one instant, if it is set on a test clock.
    #[inline]
    pub(crate) fn order(self) -> Order {
        match self {
            #[cfg(feature = "test-util")]
            Self::Test(clock) => clock.order(),
            _ => Order::NONE,
        }
    }

    /// Whether the clock has reached `tick`. Reads the precise clock only if `tick` is near.
    #[inline]
    pub(crate) fn has_reached(self, tick: Tick) -> bool {
        #[cfg(feature = "test-util")]
        if let Self::Test(clock) = self {
            return clock.has_reached(tick);
        }
        let is_clearly_ahead = self == Self::Real && tick.is_clearly_ahead();
        !is_clearly_ahead && self.now() >= tick
    }

    /// As `has_reached`, as far as this thread can tell: virtual time can be read only inside its
    /// runtime.
    pub(crate) fn has_visibly_reached(self, tick: Tick) -> bool {
        match self {
            Self::Real => self.has_reached(tick),
            #[cfg(feature = "test-util")]
            Self::Test(clock) => clock.has_reached(tick),
            #[cfg(feature = "tokio")]
            Self::Tokio => Self::virtual_now().is_some_and(|now| now >= tick),
        }
    }

    /// Converts `tick` from this clock to `other`, and preserves the remaining time.
    pub(crate) fn cross(self, other: Self, tick: Tick) -> Tick {
        if self == other || tick.is_never() {
            return tick;
        }
        match tick.since(self.now()) {
            Duration::ZERO => Tick::PAST,
            left => other.now().plus(left),
        }
    }

    /// Whether this is a test clock.
    #[inline]
    pub(crate) fn is_for_tests(self) -> bool {
        match self {
            #[cfg(feature = "test-util")]
            Self::Test(_) => true,
            _ => false,
        }
    }

    /// Whether an alarm on this clock can cancel a token. Only its runtime can set an alarm on
    /// Tokio's clock.
    pub(crate) fn has_alarms(self) -> bool {
        self == Self::Real || self.is_for_tests()
    }

    /// Whether a deadline on this clock passes without regard to time on `other`. Converting it by
    /// the time that is left would be wrong.
    pub(crate) fn is_apart_from(self, other: Self) -> bool {
        #[cfg(feature = "test-util")]
        if let (Self::Test(_), _) | (_, Self::Test(_)) = (self, other) {
            return self != other;
        }
        let _ = (self, other);
        false
    }

    /// Whether this clock currently differs from the system clock.
    ///
    /// Only a current-thread runtime can pause its time. Its clock is not paused if a reading lies
    /// between two readings of the system clock, and a later reading is ahead of both.
    #[inline]
    pub(crate) fn is_virtual(self) -> bool {
        match self {
            Self::Real => false,
            #[cfg(feature = "test-util")]
            Self::Test(_) => true,
            #[cfg(feature = "tokio")]
            Self::Tokio => pause::is_possible() && pause::is_active(),
        }
    }

    /// Whether this is Tokio's clock, and it is virtual.
    #[cfg(feature = "tokio")]
    pub(crate) fn is_paused(self) -> bool {
        self == Self::Tokio && self.is_virtual()
    }

    /// Returns this clock, or the system clock if the two currently agree.
    pub(crate) fn resolved(self) -> Self {
        if self.is_virtual() { self } else { Self::Real }
    }

    /// Returns the virtual time, or `None` if Tokio's clock is not virtual here.
    #[cfg(feature = "tokio")]
    fn virtual_now() -> Option<Tick> {
        Self::Tokio.is_virtual().then(|| Self::Tokio.now())
    }

    /// The clock for a deadline created here: a test clock, or the executor's if it is virtual.
    pub(super) fn here() -> Self {
        Self::of_task().resolved()
    }
}

/// Detects whether Tokio's time is paused.
#[cfg(feature = "tokio")]
mod pause {
    use std::time::Instant;

    use tokio::runtime::{Handle, RuntimeFlavor};

    /// The return type of the fallback for `tokio::time::pause`.
    struct Never;

    #[allow(dead_code)] // Unused if Tokio has a `pause`.
    fn pause() -> Never {
        Never
    }

    /// The return type of a `pause` function, which shows whether it is Tokio's.
    trait Pause {
        const IS_TOKIO: bool;
    }

    impl Pause for () {
        const IS_TOKIO: bool = true;
    }

    impl Pause for Never {
        const IS_TOKIO: bool = false;
    }

    const fn is_tokio_pause<P: Pause>(_: fn() -> P) -> bool {
        P::IS_TOKIO
    }

    /// Whether this build can pause Tokio's time, which needs Tokio's feature `test-util`.
    ///
    /// A crate cannot query the features of another crate, but it can detect the items they add.
    /// In this function, `pause` resolves to Tokio's function if it exists, and otherwise to the
    /// fallback above.
    pub(super) const fn is_possible() -> bool {
        #[allow(unused_imports)] // Unused if Tokio has no `pause`.
        #[allow(clippy::wildcard_imports)]
        // An import by name would not compile if Tokio has no `pause`.
        use tokio::time::*;

        is_tokio_pause(pause as fn() -> _)
    }

    /// Whether the time of the current runtime differs from system time.
    ///
    /// That is the case while it is paused, and after it was paused.
    #[cold]
    pub(super) fn is_active() -> bool {
        Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::CurrentThread)
            && !is_system_clock(|| tokio::time::Instant::now().into_std())
    }

    fn is_system_clock(clock: impl Fn() -> Instant) -> bool {
        let before = Instant::now();
        let reading = clock();
        let after = Instant::now();
        (before..=after).contains(&reading) && {
            // A paused clock can lie in that range by chance, but then it does not advance.
            while Instant::now() <= after {}
            clock() > after
        }
    }
}
