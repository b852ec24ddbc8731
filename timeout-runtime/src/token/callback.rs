//! [`Callback`]: a function that runs when a token is cancelled.
//!
//! ```text
//!              run                 returns
//!   waiting ─────────► running ─────────────► over
//!      └────────────── take back ──────────────┘
//! ```
//!
//! 1. Each transition is made under the lock of the callback, so a function is either run once or
//!    taken back.
//! 2. `take_back_and_wait` waits for *over*, except on a thread that runs on behalf of this
//!    callback: it would wait for itself.

use std::sync::{Arc, Weak};

use crate::registry::{self, muted};
use crate::sync::{Condvar, Mutex, lock};
use crate::unwind::Kept;

/// A function that runs when a token is cancelled.
pub(crate) struct Callback(Arc<CallbackCell>);

struct CallbackCell {
    state: Mutex<CallbackState>,
    is_over: Condvar,
    id: u64,
    /// The listeners that are muted while the function runs.
    muted: Vec<u64>,
}

enum CallbackState {
    Waiting(Kept<Function>),
    Running,
    Over,
}

type Function = Box<dyn FnOnce() + Send>;

/// Takes a callback back, also one that waits for a thread. Does not keep it alive.
pub(crate) struct TakeBack(Weak<CallbackCell>);

impl Callback {
    pub(crate) fn new(function: impl FnOnce() + Send + 'static) -> Self {
        Self(Arc::new(CallbackCell {
            state: Mutex::new(CallbackState::Waiting(Kept::new(Box::new(function)))),
            is_over: Condvar::default(),
            id: registry::fresh_id(),
            muted: muted::all(),
        }))
    }

    pub(crate) fn downgrade(&self) -> TakeBack {
        TakeBack(Arc::downgrade(&self.0))
    }

    /// Runs the function, unless it was taken back. Catches its panic.
    pub(crate) fn run(self) {
        let Self(cell) = self;
        let Some(function) = cell.leave_waiting(CallbackState::Running) else {
            return;
        };
        muted::mute(&cell.muted, || {
            registry::run_muted(cell.id, || {
                if let Some(function) = function.take() {
                    function();
                }
            });
        });
        *lock(&cell.state) = CallbackState::Over;
        cell.is_over.notify_one();
    }
}

impl CallbackCell {
    /// Takes the function of a waiting callback, which is in the state `next` from now on.
    fn leave_waiting(&self, next: CallbackState) -> Option<Kept<Function>> {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, next) {
            CallbackState::Waiting(function) => Some(function),
            other => {
                *state = other;
                None
            }
        }
    }

    fn wait_until_over(&self) {
        if muted::contains(self.id) {
            return;
        }
        let mut state = lock(&self.state);
        while !matches!(*state, CallbackState::Over) {
            state = self.is_over.wait(&self.state, state, None);
        }
    }
}

impl TakeBack {
    /// Drops the function. Returns `false` if it runs, has run, or was dropped with its token.
    pub(crate) fn take_back(&self) -> bool {
        let cell = self.0.upgrade();
        let function = cell.and_then(|cell| cell.leave_waiting(CallbackState::Over));
        function.is_some()
    }

    /// As `take_back`. If the function is running, waits until it has returned.
    pub(crate) fn take_back_and_wait(&self) -> bool {
        let is_taken_back = self.take_back();
        if let Some(cell) = self.0.upgrade() {
            cell.wait_until_over();
        }
        is_taken_back
    }
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;
