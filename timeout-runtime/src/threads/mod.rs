//! Starts our threads, and runs the user's start hook on each of them.

pub(crate) mod background;
pub(crate) mod parking;

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Mutex};

use crate::sync::{const_thread_local, lock, thread};
use crate::{forked, unwind};

/// A function of the user that each of our threads runs when it starts.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

static HOOK: Mutex<Option<Hook>> = Mutex::new(None);

const_thread_local! {
    static IN_HOOK: Cell<bool> = Cell::new(false);
}

/// Makes all threads that start from now on run `hook`.
pub(crate) fn set_hook(hook: Hook) {
    let before = lock(&HOOK).replace(hook);
    unwind::drop_catching(before);
}

/// Whether this code runs inside the hook.
///
/// The hook must not wait for another of our threads: that thread can run the same hook first, in
/// endless recursion. The hook could also wait for its own thread.
pub(crate) fn is_in_hook() -> bool {
    IN_HOOK.with(Cell::get)
}

/// Whether this code can rely on threads of ours.
pub(crate) fn are_available() -> bool {
    !is_in_hook() && !forked::is_child()
}

/// Starts a thread that runs the hook and then `run`.
pub(crate) fn start(
    name: String,
    stack_size: Option<usize>,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    forked::record_pid();
    let mut thread = thread::Builder::new().name(name);
    if let Some(bytes) = stack_size {
        thread = thread.stack_size(bytes);
    }
    let run = || {
        run_hook();
        run();
    };
    // An impossible stack size makes the standard library panic instead of failing.
    match unwind::catch(|| thread.spawn(run)) {
        Ok(spawned) => spawned.map(drop),
        Err(payload) => {
            unwind::drop_catching(payload);
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "invalid stack size",
            ))
        }
    }
}

fn run_hook() {
    let hook = lock(&HOOK).clone();
    if let Some(hook) = hook {
        IN_HOOK.with(|in_hook| in_hook.set(true));
        unwind::contain(|| hook());
        unwind::drop_catching(hook);
        IN_HOOK.with(|in_hook| in_hook.set(false));
    }
}
