//! Tells the test clock and the probe of a thread where the thread checks a token or waits.

use super::CancelToken;
#[cfg(feature = "test-util")]
use super::node::NodeRef;

#[cfg(feature = "test-util")]
use std::panic::Location;

#[cfg(feature = "test-util")]
use crate::outcome::Cause;
#[cfg(feature = "test-util")]
use crate::probe::{self, Point, Probe};
#[cfg(feature = "test-util")]
use crate::time::test_clock;

/// Whether checks on this thread are recorded.
#[inline]
pub(crate) fn are_recorded() -> bool {
    #[cfg(feature = "test-util")]
    {
        test_clock::current_clock().is_some() || probe::is_active()
    }
    #[cfg(not(feature = "test-util"))]
    {
        false
    }
}

/// Code checks `token`, or is about to wait for it.
#[inline]
#[cfg_attr(feature = "test-util", track_caller)]
pub(super) fn record(token: &CancelToken) {
    #[cfg(feature = "test-util")]
    if are_recorded() {
        record_at(token, Location::caller());
    }
    #[cfg(not(feature = "test-util"))]
    let _ = token;
}

#[cfg(feature = "test-util")]
#[cold]
fn record_at(token: &CancelToken, place: &'static Location<'static>) {
    if let Some(here) = test_clock::here() {
        here.check(place);
    }
    if let Some(probe) = probe::current() {
        let call = token.0.outermost_call(probe.around());
        reach(&probe, &call, Some(place));
    }
}

/// The operation of the call with this token is pending.
#[inline]
pub(crate) fn at_await(token: impl FnOnce() -> Option<CancelToken>) {
    #[cfg(feature = "test-util")]
    if probe::is_active() {
        if let Some(token) = token() {
            await_at(&token);
        }
    }
    #[cfg(not(feature = "test-util"))]
    let _ = token;
}

/// Calls inside each other are pending together: only the outermost one counts.
#[cfg(feature = "test-util")]
#[cold]
fn await_at(token: &CancelToken) {
    if let Some(probe) = probe::current() {
        let call = token.0.outermost_call(probe.around());
        if call.address() == token.0.address() {
            reach(&probe, &call, None);
        }
    }
}

/// Cancels `call` if the probe says so.
#[cfg(feature = "test-util")]
fn reach(probe: &Probe, call: &NodeRef, place: Option<&'static Location<'static>>) {
    let point = Point {
        call: call.name(),
        place,
    };
    if probe.reach(point) {
        call.cancel(Cause::Cancelled, None);
    }
}
