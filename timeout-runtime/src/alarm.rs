//! What wakes an async caller when it is time to look again.

use std::fmt;
#[cfg(feature = "tokio")]
use std::future::Future;
#[cfg(feature = "tokio")]
use std::pin::Pin;
use std::task::Context;
#[cfg(feature = "tokio")]
use std::time::Duration;

use crate::deadline::Clock;
use crate::tick::Tick;
use crate::timer::{self, Alarm, Key};

/// At most one alarm: our own timer's, or Tokio's while its clock is virtual. Dropping it takes it back.
#[derive(Default)]
pub(crate) enum CallerAlarm {
    #[default]
    Unset,
    Armed {
        at: Tick,
        alarm: Armed,
    },
    #[cfg(feature = "tokio")]
    Virtual {
        at: Tick,
        sleep: VirtualSleep,
    },
}

pub(crate) struct Armed(Key);

impl Drop for Armed {
    fn drop(&mut self) {
        timer::disarm(self.0);
    }
}

impl CallerAlarm {
    /// Whether one was set; it may have rung since.
    pub(crate) fn is_set(&self) -> bool {
        !matches!(self, Self::Unset)
    }

    /// Has the task woken at `until` by `clock`; an alarm set before is replaced.
    pub(crate) fn set(&mut self, clock: Clock, until: Tick, context: &mut Context<'_>) {
        let is_set = match self {
            Self::Armed { at, alarm } if *at == until => timer::rearm(alarm.0, context.waker()),
            #[cfg(feature = "tokio")]
            Self::Virtual { at, sleep } if *at == until => {
                sleep.as_mut().poll(context).is_pending()
            }
            _ => false,
        };
        // One that has rung before its time was set by the system's clock, and the runtime's has been paused since.
        let rings = is_set || {
            *self = Self::Unset;
            until.is_never() || self.arm(clock, until, context)
        };
        if !rings {
            // Due already, or there is no timer to be had: look again as soon as others have had their turn.
            context.waker().wake_by_ref();
        }
    }

    fn arm(&mut self, clock: Clock, at: Tick, context: &mut Context<'_>) -> bool {
        #[cfg(feature = "tokio")]
        if clock.is_virtual()
            && let Some(mut sleep) = virtual_sleep(at.since(clock.now()))
        {
            let rings = sleep.as_mut().poll(context).is_pending();
            *self = Self::Virtual { at, sleep };
            return rings;
        }
        #[cfg(not(feature = "tokio"))]
        let _ = clock;
        let waker = context.waker().clone();
        match timer::arm(at, Alarm::Wake(Some(waker))) {
            Some(key) => {
                let alarm = Armed(key);
                *self = Self::Armed { at, alarm };
                true
            }
            None => false,
        }
    }
}

/// Tokio's timer. Its type is hidden: a proof that a nested call is `Send` need not walk through it.
#[cfg(feature = "tokio")]
type VirtualSleep = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// `None` in a runtime whose clock is paused but which has no timers; Tokio says so by a panic.
#[cfg(feature = "tokio")]
fn virtual_sleep(left: Duration) -> Option<VirtualSleep> {
    crate::unwind::catch(|| -> VirtualSleep { Box::pin(tokio::time::sleep(left)) })
        .map_err(crate::unwind::dispose)
        .ok()
}

impl fmt::Debug for CallerAlarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerAlarm")
    }
}
