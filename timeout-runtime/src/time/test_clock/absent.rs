//! Stands for `test_clock` in builds without the feature `test-util`. There are no participants, so
//! the code for them is not compiled in.

#![allow(clippy::unused_self)] // The methods are those of `test_clock`.

use std::panic::Location;
use std::task::{Context, Poll};
use std::time::Duration;

/// The order of an alarm among those of the same instant, which only a test clock needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order;

impl Order {
    pub(crate) const NONE: Self = Self;
}

/// A thread or an operation that a test clock waits for. Never exists.
#[derive(Clone)]
pub(crate) enum Participant {}

impl Participant {
    #[inline]
    pub(crate) fn of_operation(_: &'static str) -> Option<Self> {
        None
    }

    #[inline]
    pub(crate) fn in_background() -> Option<Self> {
        None
    }

    pub(crate) fn enter(&self) -> OnClock {
        match *self {}
    }

    pub(crate) fn queue(&self) {
        match *self {}
    }

    pub(crate) fn unqueue(&self) {
        match *self {}
    }
}

/// A thread that runs as a participant. Never exists.
pub(crate) enum OnClock {}

/// A future that a test clock waits for. Never exists.
pub(crate) enum PolledParticipant {}

impl PolledParticipant {
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn of_operation(_: &'static str) -> Option<Self> {
        None
    }

    #[inline]
    pub(crate) fn poll<T>(
        _: &mut Option<Self>,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        poll(context)
    }
}

/// The waits of a participant for something that it alone can read. There is none.
pub(crate) struct Resting;

impl Resting {
    #[inline]
    pub(crate) fn here() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn rest<T>(&mut self, wait: impl FnOnce(Option<Duration>) -> T) -> T {
        wait(None)
    }
}

/// The clock that a context passes on: none.
#[derive(Clone, Copy)]
pub(crate) struct ContextClock;

impl ContextClock {
    #[inline]
    pub(crate) fn here() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn enter(self, _: &'static Location<'static>) -> Option<OnClock> {
        None
    }

    #[inline]
    pub(crate) fn polled(self, _: &'static Location<'static>) -> Option<PolledParticipant> {
        None
    }
}
