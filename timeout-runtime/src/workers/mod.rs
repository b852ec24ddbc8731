//! Worker threads: how many there are, what they do, and what was left running on them.
//!
//! A sync call runs on a worker by default. Workers are reused, are named `timeout-1`, `timeout-2`, and leave when they have been
//! idle for a while.

pub(crate) mod abandoned;
mod pool;
mod settings;
mod spin;
mod worker;

use crate::call::carried::Carried;
use crate::call::record::Apart;
use crate::event::WorkerName;
use crate::token::links::Callback;

pub use abandoned::{Abandoned, abandoned, drain};
pub(crate) use pool::{Place, submit, withdraw};
pub use pool::{Stats, stats};
pub use settings::Settings;
pub(crate) use spin::Spin;
pub(crate) use worker::remember;

/// What a worker does for somebody.
pub(crate) enum Job {
    /// It runs an operation, with what goes along.
    Call(Apart, Carried),
    /// It runs the callbacks of a token that fired at its deadline.
    Callbacks(Vec<Callback>),
    /// It does what a model has it do.
    #[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
    #[allow(clippy::type_complexity)] // It is there once.
    Modelled(Box<dyn FnOnce(&mut dyn FnMut()) + Send>),
}

impl Job {
    /// Does it. `free` may be called once nothing is left that could take time, to let others have the worker.
    fn run(self, worker: WorkerName, free: &mut dyn FnMut()) {
        match self {
            Self::Call(call, carried) => call.work(carried, worker, free),
            Self::Callbacks(callbacks) => callbacks.into_iter().for_each(Callback::run),
            #[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
            Self::Modelled(run) => run(free),
        }
    }
}

/// Runs callbacks on a worker, or here if none can be had.
pub(crate) fn run_callbacks(callbacks: Vec<Callback>) {
    if callbacks.is_empty() {
        return;
    }
    if let Err(Job::Callbacks(callbacks)) = pool::submit_at_once(Job::Callbacks(callbacks)) {
        callbacks.into_iter().for_each(Callback::run);
    }
}
