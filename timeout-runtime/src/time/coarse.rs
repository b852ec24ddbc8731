//! [`Coarse`]: a cheap clock reading, which the timer interrupt keeps in memory.
//!
//! It is used only on targets where the coarse clock and `std::time::Instant` share one timeline.
//! On macOS the coarse clock also counts the time asleep, and on Windows the two drift apart. On
//! other targets the coarse clock can be set back, or does not exist. `Cargo.toml` lists the same
//! targets.

#[cfg(all(
    target_has_atomic = "64",
    any(
        target_os = "linux",
        target_os = "android",
        target_os = "freebsd",
        target_os = "dragonfly"
    )
))]
mod chosen {
    use coarsetime::Instant;

    use crate::sync;

    #[derive(Clone, Copy)]
    pub(crate) struct Coarse(Instant);

    impl Coarse {
        pub(crate) fn now() -> Self {
            Self(Instant::now_without_cache_update())
        }

        /// Returns the nanoseconds since this reading, or `None` if there is no coarse clock.
        pub(crate) fn elapsed_nanos(self) -> Option<u64> {
            // A model has only the precise clock.
            if sync::IS_MODEL {
                return None;
            }
            Some(Self::now().0.duration_since(self.0).as_nanos())
        }
    }
}

#[cfg(not(all(
    target_has_atomic = "64",
    any(
        target_os = "linux",
        target_os = "android",
        target_os = "freebsd",
        target_os = "dragonfly"
    )
)))]
mod chosen {
    #[derive(Clone, Copy)]
    pub(crate) struct Coarse;

    impl Coarse {
        pub(crate) fn now() -> Self {
            Self
        }

        #[allow(clippy::unused_self)] // As on the targets with a coarse clock.
        pub(crate) fn elapsed_nanos(self) -> Option<u64> {
            None
        }
    }
}

pub(super) use chosen::Coarse;
