//! What wakes an async caller when it is time to look again.

use std::fmt;
#[cfg(feature = "tokio")]
use std::future::Future;
#[cfg(feature = "tokio")]
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Waker};
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
    Armed(Armed),
    #[cfg(feature = "tokio")]
    Virtual {
        at: Tick,
        sleep: VirtualSleep,
    },
}

/// An alarm of our own timer.
pub(crate) struct Armed {
    at: Tick,
    key: Key,
    /// Whom it wakes.
    wakes: Address,
    /// How many alarms had rung by then.
    rung: u32,
    /// How many polls have gone by without a look.
    polls: u8,
}

/// After so many polls a caller looks at the clock even if its alarm cannot have rung: the timer's thread may be short of time.
const POLLS: u8 = 32;

/// Of two wakers that have this in common, either will do.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Address(usize, usize);

impl Address {
    #[inline]
    fn of(waker: &Waker) -> Self {
        Self(waker.data().addr(), ptr::from_ref(waker.vtable()).addr())
    }
}

impl Armed {
    /// Whether it wakes the task that is being polled, and has not rung. `false` may be wrong.
    #[inline]
    fn is_still(&self, waker: &Waker) -> bool {
        // An alarm that has not rung keeps its waker, so the address is not another one's by now.
        self.wakes == Address::of(waker) && self.rung == timer::rung()
    }

    /// Has it wake `waker` from now on. `false` if it has rung.
    fn wake(&mut self, waker: &Waker) -> bool {
        let rung = timer::rung();
        if self.is_still(waker) {
            return true;
        }
        // What the alarm keeps is a clone, and that is what is known by its address.
        let waker = waker.clone();
        self.wakes = Address::of(&waker);
        self.rung = rung;
        timer::rearm(self.key, waker)
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        timer::disarm(self.key);
    }
}

impl CallerAlarm {
    /// Whether the task need not look at the clock: its alarm is set, and has not rung.
    #[inline]
    pub(crate) fn watches(&mut self, context: &Context<'_>) -> bool {
        match self {
            Self::Armed(alarm) => {
                alarm.polls = (alarm.polls + 1) % POLLS;
                alarm.polls != 0 && alarm.is_still(context.waker())
            }
            Self::Unset => false,
            #[cfg(feature = "tokio")]
            Self::Virtual { .. } => false,
        }
    }

    /// Has the task woken at `until` by `clock`; an alarm set before is replaced.
    pub(crate) fn set(&mut self, clock: Clock, until: Tick, context: &mut Context<'_>) {
        let is_set = match self {
            Self::Armed(alarm) if alarm.at == until => alarm.wake(context.waker()),
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
        if clock.is_virtual() {
            if let Some(mut sleep) = virtual_sleep(at.since(clock.now())) {
                let rings = sleep.as_mut().poll(context).is_pending();
                *self = Self::Virtual { at, sleep };
                return rings;
            }
        }
        #[cfg(not(feature = "tokio"))]
        let _ = clock;
        let waker = context.waker().clone();
        let (address, rung) = (Address::of(&waker), timer::rung());
        match timer::arm(at, Alarm::Wake(Some(waker))) {
            Some(key) => {
                *self = Self::Armed(Armed {
                    at,
                    key,
                    wakes: address,
                    rung,
                    polls: 0,
                });
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
        .map_err(crate::unwind::drop_catching)
        .ok()
}

impl fmt::Debug for CallerAlarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerAlarm")
    }
}
