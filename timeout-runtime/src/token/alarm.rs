//! [`TokenAlarm`]: cancels a token at its deadline, by our timer or by a test clock.

#[cfg(feature = "test-util")]
use std::sync::Arc;
#[cfg(feature = "test-util")]
use std::task::{Wake, Waker};

#[cfg(feature = "test-util")]
use crate::time::test_clock;
use crate::time::{Clock, Tick};
use crate::timer::{Alarm, Key};

use super::node::{NodeWeak, TIMER};

/// The alarm of a token.
pub(super) enum TokenAlarm {
    Timer(Key),
    #[cfg(feature = "test-util")]
    Test(test_clock::Alarm),
}

impl TokenAlarm {
    /// Returns `None` if there is no timer thread, or if the test clock is over.
    pub(super) fn arm(clock: Clock, at: Tick, token: NodeWeak) -> Option<Self> {
        match clock {
            #[cfg(feature = "test-util")]
            Clock::Test(clock) => {
                let waker = Waker::from(Arc::new(Expire(token)));
                clock.arm(at, clock.order(), waker).map(Self::Test)
            }
            _ => TIMER.arm(at, Alarm::Fire(token)).map(Self::Timer),
        }
    }

    /// Nothing happens if it has rung.
    pub(super) fn disarm(self) {
        match self {
            Self::Timer(key) => TIMER.disarm(key),
            #[cfg(feature = "test-util")]
            Self::Test(alarm) => drop(alarm),
        }
    }
}

/// Cancels a token at its deadline.
#[cfg(feature = "test-util")]
struct Expire(NodeWeak);

#[cfg(feature = "test-util")]
impl Wake for Expire {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(token) = self.0.upgrade() {
            token.expire();
        }
    }
}
