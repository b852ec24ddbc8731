//! [`Pause`]: the time before a stop function is called again.

use std::task::Waker;
use std::time::Duration;

#[cfg(feature = "test-util")]
use crate::time::test_clock;
use crate::time::{Clock, Tick};
use crate::timer::{Alarm, Key};
use crate::token::node::TIMER;

/// The longest pause in real time, for work that holds its test clock.
#[cfg(feature = "test-util")]
const WHILE_TIME_STANDS: Duration = Duration::from_millis(250);

/// The time before a stop function is called again. Dropping it disarms its alarm.
pub(super) struct Pause {
    key: Key,
    #[cfg(feature = "test-util")]
    _on_test_clock: Option<test_clock::Alarm>,
}

impl Pause {
    /// Makes the timer call `waker` after `pause` on `clock`. Returns `None` if there is no timer.
    #[cfg(not(feature = "test-util"))]
    pub(super) fn begin(_: Clock, pause: Duration, waker: Waker) -> Option<Self> {
        let key = arm(pause, waker)?;
        Some(Self { key })
    }

    /// Makes the timer call `waker` after `pause` on `clock`. Returns `None` if there is no timer.
    ///
    /// A pause on a test clock also ends in real time: the work may block elsewhere, and time
    /// stands until it returns.
    #[cfg(feature = "test-util")]
    pub(super) fn begin(clock: Clock, pause: Duration, waker: Waker) -> Option<Self> {
        let Clock::Test(id) = clock else {
            let key = arm(pause, waker)?;
            return Some(Self {
                key,
                _on_test_clock: None,
            });
        };
        let at = clock.now().plus(pause);
        Some(Self {
            key: arm(WHILE_TIME_STANDS, waker.clone())?,
            _on_test_clock: id.arm(at, clock.order(), waker),
        })
    }
}

fn arm(pause: Duration, waker: Waker) -> Option<Key> {
    TIMER.arm(Tick::now().plus(pause), Alarm::Wake(Some(waker)))
}

impl Drop for Pause {
    fn drop(&mut self) {
        TIMER.disarm(self.key);
    }
}
