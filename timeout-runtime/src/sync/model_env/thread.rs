//! Threads of a model, with the interface of `std::thread`. Starting one can be made to fail.

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
    /// The last clock reading of the thread.
    last_reading: AtomicU64,
    /// The clock reading at which `advance` wakes the thread.
    until: AtomicU64,
}

/// The panic payload that ends a parked thread after the scenario.
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
            last_reading: AtomicU64::new(0),
            until: AtomicU64::new(u64::MAX),
        }));
        lock(&ENV.threads).push(thread.clone());
        thread
    }

    pub(crate) fn is_current(&self) -> bool {
        Arc::ptr_eq(&self.0, &current().0)
    }

    pub(super) fn has_seen(&self, now: u64) {
        self.0.last_reading.store(now, SeqCst);
    }

    pub(super) fn wakes_by(&self, now: u64) -> bool {
        self.0.until.load(SeqCst) <= now
    }

    pub(crate) fn unpark(&self) {
        self.0.is_woken.swap(true, SeqCst);
        // loom's `unpark` would also wake the thread from waiting for a lock.
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
    // The model does not switch threads between this check and the park.
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

/// Parks for at most `longest`, counted from the thread's last clock reading.
pub(crate) fn park_timeout(longest: Duration) {
    let Inner {
        last_reading,
        until,
        ..
    } = &*current().0;
    let at = last_reading.load(SeqCst) + nanos(longest);
    until.store(at, SeqCst);
    // In loom, a plain load can return an old time.
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

    #[allow(clippy::unused_self)] // Has the signature of `std`'s `spawn`.
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
