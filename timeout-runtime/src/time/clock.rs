//! [`Clock`]: the system's clock, or Tokio's clock, which can be virtual.

use std::time::Duration;

use super::Tick;

/// The clock of an instant.
///
/// Both clocks read [`Instant`]s. They agree unless Tokio's clock is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Clock {
    /// The system's monotonic clock.
    Real,
    /// Tokio's clock, which is virtual in a runtime whose time is paused.
    #[cfg(feature = "tokio")]
    Tokio,
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

    pub(crate) fn now(self) -> Tick {
        match self {
            Self::Real => Tick::now(),
            #[cfg(feature = "tokio")]
            Self::Tokio => Tick::of(tokio::time::Instant::now().into_std()),
        }
    }

    /// Whether the clock has reached `tick`. Reads the precise clock only if `tick` is near.
    #[inline]
    pub(crate) fn has_reached(self, tick: Tick) -> bool {
        let is_clearly_ahead = self == Self::Real && tick.is_clearly_ahead();
        !is_clearly_ahead && self.now() >= tick
    }

    /// As `has_reached`, as far as this thread can tell: virtual time can be read only inside its
    /// runtime.
    pub(crate) fn has_visibly_reached(self, tick: Tick) -> bool {
        match self {
            Self::Real => self.has_reached(tick),
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

    /// Whether this clock currently differs from the system clock.
    ///
    /// Only a current-thread runtime can pause its time. Its clock is not paused if a reading lies
    /// between two readings of the system clock, and a later reading is ahead of both.
    #[inline]
    pub(crate) fn is_virtual(self) -> bool {
        match self {
            Self::Real => false,
            #[cfg(feature = "tokio")]
            Self::Tokio => pause::is_possible() && pause::is_active(),
        }
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

    /// The clock for a deadline created here: the executor's clock if it is virtual.
    pub(super) fn here() -> Self {
        Self::EXECUTOR.resolved()
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
