//! [`CallerAlarm`]: wakes the task that polls a future at a given instant: by our timer, or by
//! Tokio's while its time is paused.

use std::fmt;
#[cfg(feature = "tokio")]
use std::future::Future;
#[cfg(feature = "tokio")]
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
#[cfg(feature = "tokio")]
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Waker};
#[cfg(feature = "tokio")]
use std::time::Duration;

use crate::terms::Terms;
#[cfg(feature = "test-util")]
use crate::time::test_clock;
use crate::time::{Clock, Order, Tick};
use crate::timer::{Alarm, Key};

use super::alarm::TokenAlarm;
use super::node::{NodeRef, TIMER};

/// At most one alarm: on our own timer, or on Tokio's while its clock is virtual.
///
/// Dropping it disarms the alarm.
#[derive(Default)]
pub(crate) enum CallerAlarm {
    #[default]
    Unset,
    /// Wakes the task by our own timer.
    Armed {
        at: Tick,
        key: Key,
        /// The waker that the alarm holds.
        wakes: Address,
        /// The timer's count of expired alarms when this one was set.
        expired: u32,
        /// Polls since the clock was last read, modulo [`POLLS`].
        polls: u8,
    },
    /// Cancels the token of the call, which wakes the task.
    Token { key: Key },
    /// Wakes the task by a test clock.
    #[cfg(feature = "test-util")]
    Test(test_clock::Alarm),
    #[cfg(feature = "tokio")]
    Virtual { at: Tick, sleep: VirtualSleep },
}

impl Drop for CallerAlarm {
    #[inline]
    fn drop(&mut self) {
        if let Self::Armed { key, .. } | Self::Token { key } = self {
            TIMER.disarm(*key);
        }
    }
}

/// Every so many polls the caller reads the clock even if its alarm has not expired.
///
/// On a busy machine the timer's thread may run late.
const POLLS: u8 = 32;

/// Identity of a waker: wakers with equal addresses wake the same task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address(usize, usize);

impl Address {
    #[inline]
    fn of(waker: &Waker) -> Self {
        Self(waker.data().addr(), ptr::from_ref(waker.vtable()).addr())
    }

    /// Whether an alarm with this waker is pending and wakes the polled task. `false` can be wrong.
    #[inline]
    fn is_pending_for(self, waker: &Waker, expired: u32) -> bool {
        // A pending alarm keeps its waker alive, so no other waker can have reused the address.
        self == Self::of(waker) && expired == TIMER.fired_alarms()
    }
}

impl CallerAlarm {
    /// Whether the task can skip the clock reading, because its alarm is still pending.
    #[inline]
    pub(crate) fn watches(&mut self, context: &Context<'_>) -> bool {
        match self {
            Self::Armed {
                wakes,
                expired,
                polls,
                ..
            } => {
                *polls = (*polls + 1) % POLLS;
                *polls != 0 && wakes.is_pending_for(context.waker(), *expired)
            }
            Self::Unset | Self::Token { .. } => false,
            #[cfg(feature = "test-util")]
            Self::Test(_) => false,
            #[cfg(feature = "tokio")]
            Self::Virtual { .. } => false,
        }
    }

    /// Makes the timer cancel the token of a call at its deadline, if nothing does so yet.
    ///
    /// The key of that alarm is here, since the call ends or its token is cancelled before this is
    /// dropped. In the links of the token, it would need a box.
    pub(crate) fn watch(&mut self, token: &NodeRef) {
        if !token.terms().is_some_and(Terms::cancels_at_deadline) {
            token.ensure_timer();
            return;
        }
        let mut armed = None;
        token.ensure_timer_with(|alarm| match alarm {
            TokenAlarm::Timer(key) => {
                armed = Some(key);
                None
            }
            #[cfg(feature = "test-util")]
            TokenAlarm::Test(_) => Some(alarm),
        });
        if let Some(key) = armed {
            *self = Self::Token { key };
        }
    }

    /// Wakes the task at `until` on `clock`. Replaces an alarm set before.
    pub(crate) fn set(&mut self, clock: Clock, until: Tick, context: &mut Context<'_>) {
        self.set_in_order(clock, until, Order::NONE, context);
    }

    /// As `set`. `order` is that of the alarm on a test clock, if it was fixed before.
    pub(crate) fn set_in_order(
        &mut self,
        clock: Clock,
        until: Tick,
        order: Order,
        context: &mut Context<'_>,
    ) {
        let is_set = match self {
            #[cfg(feature = "test-util")]
            Self::Test(alarm) if alarm.at() == until => alarm.set_waker(context.waker()),
            Self::Armed {
                at,
                key,
                wakes,
                expired,
                ..
            } if *at == until => {
                wakes.is_pending_for(context.waker(), *expired) || {
                    *expired = TIMER.fired_alarms();
                    // The alarm keeps this clone, whose address can differ from that of the
                    // original.
                    let waker = context.waker().clone();
                    *wakes = Address::of(&waker);
                    TIMER.rearm(*key, waker)
                }
            }
            #[cfg(feature = "tokio")]
            Self::Virtual { at, sleep } if *at == until => {
                sleep.as_mut().poll(context).is_pending()
            }
            _ => false,
        };
        // An alarm can expire before `until`: it was set on the system clock, and the runtime's
        // clock has been paused since.
        let is_pending = is_set || {
            *self = Self::Unset;
            until.is_never() || self.arm(clock, until, order, context)
        };
        if !is_pending {
            // `until` has passed, or no timer is available: poll again after other tasks.
            context.waker().wake_by_ref();
        }
    }

    fn arm(&mut self, clock: Clock, at: Tick, order: Order, context: &mut Context<'_>) -> bool {
        #[cfg(feature = "test-util")]
        if let Clock::Test(id) = clock {
            let order = order.or_else(|| clock.order());
            let alarm = id.arm(at, order, context.waker().clone());
            *self = alarm.map_or(Self::Unset, Self::Test);
            return !matches!(self, Self::Unset);
        }
        let _ = order;
        #[cfg(feature = "tokio")]
        if clock.is_virtual() {
            if let Some(mut sleep) = virtual_sleep(at.since(clock.now())) {
                let is_pending = sleep.as_mut().poll(context).is_pending();
                *self = Self::Virtual { at, sleep };
                return is_pending;
            }
        }
        #[cfg(not(feature = "tokio"))]
        let _ = clock;
        let waker = context.waker().clone();
        let (address, expired) = (Address::of(&waker), TIMER.fired_alarms());
        match TIMER.arm(at, Alarm::Wake(Some(waker))) {
            Some(key) => {
                *self = Self::Armed {
                    at,
                    key,
                    wakes: address,
                    expired,
                    polls: 0,
                };
                true
            }
            None => false,
        }
    }
}

/// Tokio's timer. The boxed type shortens the compiler's proof that a nested call is `Send`.
#[cfg(feature = "tokio")]
type VirtualSleep = Pin<Box<dyn Future<Output = ()> + Send + Sync + UnwindSafe + RefUnwindSafe>>;

/// Returns `None` in a runtime without timers, where Tokio panics.
#[cfg(feature = "tokio")]
fn virtual_sleep(left: Duration) -> Option<VirtualSleep> {
    crate::unwind::catch(|| -> VirtualSleep {
        Box::pin(AssertUnwindSafe(tokio::time::sleep(left)))
    })
    .map_err(crate::unwind::drop_catching)
    .ok()
}

impl fmt::Debug for CallerAlarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerAlarm")
    }
}
