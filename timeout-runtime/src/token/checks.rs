//! Tells the test clock of a thread where the thread checks a token or waits.

use super::CancelToken;

#[cfg(feature = "test-util")]
use std::panic::Location;

#[cfg(feature = "test-util")]
use crate::time::test_clock;

/// Whether checks on this thread are recorded.
#[inline]
pub(crate) fn are_recorded() -> bool {
    #[cfg(feature = "test-util")]
    {
        test_clock::current_clock().is_some()
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
        record_at(Location::caller());
    }
    let _ = token;
}

#[cfg(feature = "test-util")]
#[cold]
fn record_at(place: &'static Location<'static>) {
    if let Some(here) = test_clock::here() {
        here.check(place);
    }
}
