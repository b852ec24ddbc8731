//! The thread that watches all test clocks, and ends those on which nothing happens.

use std::mem;
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::sync::lock;
use crate::threads;
use crate::time::test_clock::VirtualClock;

/// How long nothing may happen on a clock while an operation blocks elsewhere.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How often the thread looks at the clocks. Each look counts this much time, so a process that was
/// stopped, or a machine that is too busy to look, loses no patience.
const STEP: Duration = Duration::from_millis(50);

struct Watched {
    clock: Weak<VirtualClock>,
    signs: u64,
    patience: Duration,
    quiet: Duration,
}

struct Watcher {
    clocks: Vec<Watched>,
    is_started: bool,
    /// The thread, once it runs.
    thread: Option<Thread>,
}

static WATCHER: Mutex<Watcher> = Mutex::new(Watcher {
    clocks: Vec::new(),
    is_started: false,
    thread: None,
});

/// Ends `clock` if nothing happens on it for as long as `patience`, while an operation blocks
/// elsewhere.
pub(super) fn watch(clock: &Arc<VirtualClock>, patience: Duration) {
    let entry = Watched {
        clock: Arc::downgrade(clock),
        signs: clock.signs(),
        patience,
        quiet: Duration::ZERO,
    };
    let mut watcher = lock(&WATCHER);
    let is_same = |other: &Watched| Weak::ptr_eq(&other.clock, &entry.clock);
    watcher.clocks.retain(|other| !is_same(other));
    watcher.clocks.push(entry);
    if let Some(thread) = &watcher.thread {
        thread.unpark();
    }
    if !mem::replace(&mut watcher.is_started, true) {
        drop(watcher);
        // If the system refuses the thread, a test that would fail hangs.
        let started = threads::start("timeout-test-clocks".to_owned(), None, run);
        lock(&WATCHER).is_started = started.is_ok();
    }
}

fn run() {
    lock(&WATCHER).thread = Some(thread::current());
    loop {
        let (quiet, is_idle) = look();
        for clock in quiet {
            clock.judge();
        }
        if is_idle {
            thread::park();
        } else {
            thread::sleep(STEP);
        }
    }
}

/// The clocks on which nothing has happened for too long, and whether there is no clock.
fn look() -> (Vec<Arc<VirtualClock>>, bool) {
    let mut watcher = lock(&WATCHER);
    let mut quiet = Vec::new();
    watcher.clocks.retain_mut(|watched| {
        let Some(clock) = watched.clock.upgrade() else {
            return false;
        };
        if clock.is_over() {
            return false;
        }
        let before = mem::replace(&mut watched.signs, clock.signs());
        if before != watched.signs {
            watched.quiet = Duration::ZERO;
            return true;
        }
        watched.quiet += STEP;
        if watched.quiet >= watched.patience {
            quiet.push(clock);
        }
        true
    });
    (quiet, watcher.clocks.is_empty())
}
