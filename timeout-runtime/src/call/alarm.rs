//! What wakes an async caller when it is time to look again.

#[cfg(feature = "tokio")]
use std::future::Future;
#[cfg(feature = "tokio")]
use std::pin::Pin;
use std::task::Context;
use std::time::Instant;

use crate::deadline::Deadline;
use crate::timer::{self, Alarm, Key};

/// At most one alarm: our own timer's, or Tokio's while its clock is virtual. Dropping it takes it back.
#[derive(Default)]
pub(crate) enum CallerAlarm {
    #[default]
    Unset,
    Armed {
        at: Instant,
        alarm: Armed,
    },
    #[cfg(feature = "tokio")]
    Virtual(Pin<Box<tokio::time::Sleep>>),
}

pub(crate) struct Armed(Key);

impl Drop for Armed {
    fn drop(&mut self) {
        timer::disarm(self.0);
    }
}

impl CallerAlarm {
    /// Has the task woken at `until`; an alarm set before is replaced.
    pub(crate) fn set(&mut self, until: Deadline, context: &mut Context<'_>) {
        let Some(at) = until.instant() else {
            *self = Self::Unset;
            return;
        };
        let rings = match self {
            Self::Armed { at: set, alarm } if *set == at => timer::rearm(alarm.0, context.waker()),
            #[cfg(feature = "tokio")]
            Self::Virtual(sleep) if sleep.deadline().into_std() == at => {
                sleep.as_mut().poll(context).is_pending()
            }
            _ => self.replace(until, at, context),
        };
        if !rings {
            // Due already, or there is no timer to be had: look again as soon as others have had their turn.
            context.waker().wake_by_ref();
        }
    }

    fn replace(&mut self, until: Deadline, at: Instant, context: &mut Context<'_>) -> bool {
        *self = Self::Unset;
        #[cfg(feature = "tokio")]
        if until.clock().is_virtual()
            && let Some(mut sleep) = virtual_sleep(at)
        {
            let rings = sleep.as_mut().poll(context).is_pending();
            *self = Self::Virtual(sleep);
            return rings;
        }
        let _ = until;
        match timer::arm(at, Alarm::Wake(Some(context.waker().clone()))) {
            Some(key) => {
                let alarm = Armed(key);
                *self = Self::Armed { at, alarm };
                true
            }
            None => false,
        }
    }
}

/// `None` in a runtime whose clock is paused but which has no timers; Tokio says so by a panic.
#[cfg(feature = "tokio")]
fn virtual_sleep(at: Instant) -> Option<Pin<Box<tokio::time::Sleep>>> {
    crate::unwind::catch(|| Box::pin(tokio::time::sleep_until(at.into())))
        .map_err(crate::unwind::dispose)
        .ok()
}
