//! Threads as those of `std::thread`, which may be refused.

use std::cell::OnceCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool as Flag, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::sync::{AtomicBool, lock, thread_local};

use super::{ENV, nanos, native};

pub(crate) use native::yield_now;

#[derive(Clone)]
pub(crate) struct Thread(Arc<Inner>);

struct Inner {
    native: OnceLock<native::Thread>,
    is_woken: AtomicBool,
    is_parked: Flag,
    /// What it has seen on the clock last.
    looked: AtomicU64,
    /// When it is to be woken in any case.
    until: AtomicU64,
}

/// What ends a thread.
struct End;

thread_local! {
    static CURRENT: OnceCell<Thread> = OnceCell::new();
}

pub(crate) fn current() -> Thread {
    CURRENT.with(|current| current.get_or_init(Thread::new).clone())
}

impl Thread {
    fn new() -> Self {
        let thread = Self(Arc::new(Inner {
            native: OnceLock::new(),
            is_woken: AtomicBool::new(false),
            is_parked: Flag::new(false),
            looked: AtomicU64::new(0),
            until: AtomicU64::new(u64::MAX),
        }));
        lock(&ENV.threads).push(thread.clone());
        thread
    }

    pub(super) fn has_seen(&self, now: u64) {
        self.0.looked.store(now, SeqCst);
    }

    pub(super) fn wakes_by(&self, now: u64) -> bool {
        self.0.until.load(SeqCst) <= now
    }

    pub(crate) fn unpark(&self) {
        self.0.is_woken.swap(true, SeqCst);
        // loom would also wake it from waiting for a lock.
        if !self.0.is_parked.swap(false, SeqCst) {
            return;
        }
        if let Some(thread) = self.0.native.get() {
            thread.unpark();
        }
    }
}

pub(crate) fn park() {
    let Inner {
        native,
        is_woken,
        is_parked,
        ..
    } = &*current().0;
    native.get_or_init(native::current);
    // Nobody else has a turn between this and the park.
    if !is_woken.swap(false, SeqCst) && !ENV.is_over.load(SeqCst) {
        is_parked.store(true, SeqCst);
        native::park();
        is_parked.store(false, SeqCst);
        is_woken.swap(false, SeqCst);
    }
    if ENV.is_over.load(SeqCst) {
        resume_unwind(Box::new(End));
    }
}

/// Parks for so long from the thread's last look at the clock.
pub(crate) fn park_timeout(longest: Duration) {
    let Inner { looked, until, .. } = &*current().0;
    let at = looked.load(SeqCst) + nanos(longest);
    until.store(at, SeqCst);
    // loom may show an old time to a plain load.
    if ENV.now.fetch_add(0, SeqCst) < at {
        park();
    }
    until.store(u64::MAX, SeqCst);
}

pub(crate) struct Builder;

impl Builder {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn name(self, _: String) -> Self {
        self
    }

    pub(crate) fn stack_size(self, _: usize) -> Self {
        self
    }

    #[allow(clippy::unused_self)] // As in `std`.
    pub(crate) fn spawn(self, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let refusals = &ENV.refusals;
        let refused = refusals.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        if refused.is_ok() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let thread = Thread::new();
        let started = native::spawn({
            let thread = thread.clone();
            move || {
                CURRENT.with(|current| current.set(thread).ok());
                match catch_unwind(AssertUnwindSafe(run)) {
                    Err(payload) if !payload.is::<End>() => resume_unwind(payload),
                    Ok(()) | Err(_) => {}
                }
            }
        });
        lock(&ENV.started).push(started);
        Ok(())
    }
}
