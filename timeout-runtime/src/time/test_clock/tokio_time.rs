//! Paused Tokio time, which drives the test clock of the futures that are polled inside it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::Context;

use crate::time::{Clock, Tick};
use crate::unwind;

/// The time of the current runtime, if it is paused.
pub(super) fn paused_now() -> Option<Tick> {
    Clock::EXECUTOR.is_paused().then(|| Clock::EXECUTOR.now())
}

type Sleep = Pin<Box<dyn Future<Output = ()> + Send + Sync + UnwindSafe + RefUnwindSafe>>;

/// Makes Tokio's time move to the next alarm of the clock.
#[derive(Default)]
pub(super) struct Mirror(Option<Sleep>);

impl Mirror {
    /// Wakes the task when Tokio's time has moved from `now` to `next`. `None`: never.
    pub(super) fn set(&mut self, now: Tick, next: Option<Tick>, context: &mut Context<'_>) {
        self.0 = None;
        let Some(next) = next else {
            return;
        };
        // Tokio panics in a runtime without timers.
        let sleep = unwind::catch(|| -> Sleep {
            Box::pin(AssertUnwindSafe(tokio::time::sleep(next.since(now))))
        });
        let Ok(mut sleep) = sleep.map_err(unwind::drop_catching) else {
            return;
        };
        if sleep.as_mut().poll(context).is_ready() {
            context.waker().wake_by_ref();
        }
        self.0 = Some(sleep);
    }
}
