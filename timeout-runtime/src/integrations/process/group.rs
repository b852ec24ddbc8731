//! [`Group`]: the processes of one child, from its start to its end.
//!
//! ```text
//!   running ──cancelled──► ending ──grace is over, or the child has exited──► killed ──► reaped
//!     │ │                                                                        ▲          ▲
//!     │ └──────────────────── cancelled, without grace or on Windows ────────────┘          │
//!     └────────────────────────── the child exits by itself ────────────────────────────────┘
//! ```
//!
//! Dropping a child whose status was not returned has the effect of a cancellation.
//!
//! 1. Each step is taken under the lock, and none blocks. The thread that cancels the token takes
//!    the first one, and the timer takes all further ones. A thread that waits for the child takes
//!    them, too, so it does not depend on the timer.
//! 2. A signal goes to processes whose leader is not reaped, or was reaped in the same step. So the
//!    number of the group cannot belong to other processes.
//! 3. A child that was signalled never counts as one that has exited by itself: its output can be
//!    truncated.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use crate::sync::{Mutex, lock};
use crate::time::{Clock, Tick};
use crate::timer::Alarm;
use crate::token::node::TIMER;

use super::system::Processes;

/// The pause after the first step. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause: how long a child that has exited can wait to be reaped.
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

pub(super) struct Group {
    /// The time between the request to end and the kill.
    grace: Duration,
    state: Mutex<State>,
}

struct State {
    /// `None` once the child is reaped.
    processes: Option<Processes>,
    phase: Phase,
    /// The pause before the next step that the timer takes.
    pause: Duration,
}

#[derive(Clone, Copy)]
pub(super) enum Phase {
    Running,
    Ending { until: Tick },
    Killed { at: Tick },
}

impl Group {
    pub(super) fn new(processes: Processes, grace: Duration) -> Arc<Self> {
        Arc::new(Self {
            grace,
            state: Mutex::new(State {
                processes: Some(processes),
                phase: Phase::Running,
                pause: FIRST_PAUSE,
            }),
        })
    }

    /// Returns the status of a child that has exited by itself, and reaps it.
    pub(super) fn exit_status(&self) -> io::Result<Option<ExitStatus>> {
        let mut state = lock(&self.state);
        let (Phase::Running, Some(processes)) = (state.phase, &mut state.processes) else {
            return Ok(None);
        };
        let status = processes.try_wait()?;
        if status.is_some() {
            state.processes = None;
        }
        Ok(status)
    }

    /// Takes the next step to the end of the processes. Returns the phase, or `None` once the child
    /// is reaped.
    pub(super) fn stop(&self) -> Option<Phase> {
        lock(&self.state).stop(self.grace)
    }
}

impl State {
    fn stop(&mut self, grace: Duration) -> Option<Phase> {
        let processes = self.processes.as_mut()?;
        let is_due = match self.phase {
            Phase::Running => {
                let is_asked = !grace.is_zero() && processes.terminate();
                if is_asked {
                    let until = Tick::now().plus(grace);
                    self.phase = Phase::Ending { until };
                }
                !is_asked
            }
            // An error means that the child is not ours to wait for any more.
            Phase::Ending { until } => {
                Clock::Real.has_reached(until) || !matches!(processes.try_wait(), Ok(None))
            }
            Phase::Killed { .. } => false,
        };
        if is_due {
            processes.kill();
            self.phase = Phase::Killed { at: Tick::now() };
        }
        if matches!(self.phase, Phase::Killed { .. }) && !matches!(processes.try_wait(), Ok(None)) {
            self.processes = None;
            return None;
        }
        Some(self.phase)
    }
}

impl Wake for Group {
    /// Takes a step, and makes the timer take the next one.
    fn wake(self: Arc<Self>) {
        let mut state = lock(&self.state);
        if state.stop(self.grace).is_none() {
            return;
        }
        let pause = state.pause;
        state.pause = (2 * pause).min(LONGEST_PAUSE);
        drop(state);
        let alarm = Alarm::Wake(Some(Waker::from(self)));
        // Without a timer, the thread that waits for the child takes the next step.
        let _ = TIMER.arm(Tick::now().plus(pause), alarm);
    }
}
