//! [`ClockHold`]: keeps Tokio's paused clock from advancing while one of our threads works for its
//! runtime.

#[cfg(feature = "tokio")]
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
#[cfg(feature = "tokio")]
use std::time::Duration;

#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

#[cfg(feature = "tokio")]
use super::Clock;
#[cfg(feature = "tokio")]
use crate::unwind;

/// While a hold or a clone of it exists, the paused clock of a runtime does not advance by itself.
///
/// Tokio advances a paused clock when its runtime is idle, unless a blocking task of the runtime
/// exists.
#[derive(Clone, Debug)]
pub(crate) struct ClockHold {
    /// Closing the channel ends the blocking task.
    #[cfg(feature = "tokio")]
    _open: Option<Sender<()>>,
}

/// How long one blocking task holds the clock. It spawns the next one before it ends.
///
/// One task for the whole hold would block `Runtime::drop`. With `max_blocking_threads(1)` it would
/// also starve all other blocking tasks.
#[cfg(feature = "tokio")]
const TURN: Duration = Duration::from_millis(10);

impl ClockHold {
    /// Holds the clock of the current runtime, if it is paused.
    pub(crate) fn here() -> Self {
        Self {
            #[cfg(feature = "tokio")]
            _open: Clock::of_task().is_paused().then(open).flatten(),
        }
    }

    /// Lets the clock advance again, unless a clone still holds it.
    pub(crate) fn release(self) {
        let Self { .. } = self;
    }
}

#[cfg(feature = "tokio")]
fn open() -> Option<Sender<()>> {
    let runtime = Handle::try_current().ok()?;
    let (open, closed) = mpsc::channel();
    hold(&runtime, closed);
    Some(open)
}

/// Holds the clock of `runtime` until the channel closes or the runtime shuts down.
#[cfg(feature = "tokio")]
fn hold(runtime: &Handle, closed: Receiver<()>) {
    let next = runtime.clone();
    let turn = move || {
        if let Err(RecvTimeoutError::Timeout) = closed.recv_timeout(TURN) {
            hold(&next, closed);
        }
    };
    // Tokio panics if the system refuses a thread.
    unwind::contain(|| drop(runtime.spawn_blocking(turn)));
}
