//! Worker threads: how many there are, what they do, and what was left running on them.
//!
//! A sync call runs on a worker by default. Workers are reused, are named `timeout-1`, `timeout-2`, and leave when they have been
//! idle for a while.

pub(crate) mod abandoned;
mod pool;
mod settings;
mod spin;

use std::sync::Arc;

use crate::event::WorkerName;
use crate::token::links::Callback;

pub use abandoned::{Abandoned, abandoned, drain};
pub(crate) use pool::{Place, remember, submit, withdraw};
pub use pool::{Stats, stats};
pub use settings::Settings;
pub(crate) use spin::Spin;

/// What a worker does for somebody.
pub(crate) trait Job: Send + Sync {
    /// Does it. `free` may be called once nothing is left that could take time, to let others have the worker.
    fn run(self: Arc<Self>, worker: WorkerName, free: &mut dyn FnMut());
}

/// Callbacks of a token that fired at its deadline.
struct Callbacks(std::sync::Mutex<Vec<Callback>>);

impl Job for Callbacks {
    fn run(self: Arc<Self>, _: WorkerName, _: &mut dyn FnMut()) {
        self.run_all();
    }
}

impl Callbacks {
    fn run_all(&self) {
        let callbacks = std::mem::take(&mut *crate::sync::lock(&self.0));
        callbacks.into_iter().for_each(Callback::run);
    }
}

/// Runs callbacks on a worker, or here if none can be had.
pub(crate) fn run_callbacks(callbacks: Vec<Callback>) {
    if callbacks.is_empty() {
        return;
    }
    let job = Arc::new(Callbacks(callbacks.into()));
    if !pool::submit_at_once(job.clone()) {
        job.run_all();
    }
}
