//! Stands for `probe` in builds without the feature `test-util`. There are no probes.

#![allow(clippy::unused_self)] // The methods are those of `probe`.

/// The probe of a thread: none.
#[derive(Clone, Debug)]
pub(crate) struct ProbeHandle;

/// A thread that runs on behalf of a probe. Never exists.
pub(crate) enum Entered {}

impl ProbeHandle {
    #[inline]
    pub(crate) fn here() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        true
    }

    #[inline]
    pub(crate) fn enter(&self) -> Option<Entered> {
        None
    }
}

/// Whether this thread runs on behalf of a probe.
#[inline]
pub(crate) fn is_active() -> bool {
    false
}
