//! Worker threads: their number, their settings, and the abandoned operations that still run on
//! them.
//!
//! A sync call runs on a worker by default. Workers are named `timeout-1`, `timeout-2` and so on,
//! are reused, and end after some time without work.
//!
//! # What a worker inherits
//!
//! Every operating system passes some properties of a thread on to the threads that it starts. On
//! Linux these are the scheduling class and priority, the set of processors, the signal mask,
//! credentials that were changed for one thread, and namespaces. A worker is started by the first
//! call that needs it, so it has the properties of that caller's thread, and keeps them for all
//! later calls. The same holds for the threads that keep deadlines and run callbacks. A caller with
//! a low priority thus makes later calls of other threads slow, and their limits late.
//!
//! Two things help. [`start`] starts these threads early, from a thread that has the right
//! properties. The function given to [`Settings::on_thread_start`] runs on each of our threads
//! first, and can set what it needs.

pub(crate) mod abandoned;
mod early;
mod pool;
mod settings;
mod spin;
mod worker;

use std::sync::mpsc;

use crate::call::cell::SpawnedCall;
use crate::call::propagated::PropagatedToWorker;
use crate::event::WorkerName;

pub use abandoned::{Abandoned, abandoned, drain, drain_async};
pub use early::{StartError, start};
pub(crate) use pool::{Place, submit, withdraw};
pub use pool::{Stats, stats};
pub use settings::Settings;
pub(crate) use spin::Spin;
pub(crate) use worker::remember;

/// What a worker runs.
pub(crate) enum Job {
    /// An operation, with what its caller's thread propagates.
    Call(SpawnedCall, PropagatedToWorker),
    /// Nothing. Dropping the sender tells the receiver that the worker is idle.
    Ready(mpsc::Sender<()>),
    /// A job of a model.
    #[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
    #[allow(clippy::type_complexity)] // Used once.
    Modelled(Box<dyn FnOnce(&mut dyn FnMut()) + Send>),
}

impl Job {
    /// Runs the job. `free` makes the worker idle; the job calls it early if nothing slow is left.
    fn run(self, worker: WorkerName, free: &mut dyn FnMut()) {
        match self {
            Self::Call(call, propagated) => call.work(propagated, worker, free),
            Self::Ready(starting) => {
                free();
                drop(starting);
            }
            #[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
            Self::Modelled(run) => run(free),
        }
    }
}
