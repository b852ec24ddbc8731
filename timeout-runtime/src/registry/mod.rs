//! [`Registry`]: functions that users register for the whole process, called outside all locks.
//! [`Entry`] is one of them, or a policy's own.

pub(crate) mod muted;
mod registration;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::forked;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock, try_lock};
use crate::unwind::{self, Kept};

pub(crate) use registration::Registered;
pub use registration::Registration;

/// How often a thread checks whether other threads have left a removed function.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Functions of users, in the order of registration.
pub(crate) struct Registry<T: ?Sized> {
    /// Each change replaces the whole list, so that readers iterate without the lock.
    pub(crate) list: Mutex<Option<Arc<[Entry<T>]>>>,
    pub(crate) count: AtomicUsize,
}

/// A registered function, or a policy's own one.
pub(crate) struct Entry<T: ?Sized> {
    id: u64,
    // Dropping a list can drop several functions, and several destructors can panic.
    function: Kept<Arc<T>>,
    /// `None` for a policy's own function, which is never removed.
    calls: Option<Arc<Calls>>,
}

/// The calls of a registered function.
#[derive(Default)]
struct Calls {
    /// `REMOVED` or nothing, and `CALL` for each thread that is calling the function.
    state: AtomicUsize,
}

const REMOVED: usize = 1;
const CALL: usize = 2;

impl Calls {
    /// Returns `false` if the function was removed. A thread with an old list may be too late.
    fn begin(&self) -> bool {
        let is_removed = self.state.fetch_add(CALL, Ordering::SeqCst) & REMOVED != 0;
        if is_removed {
            self.end();
        }
        !is_removed
    }

    fn end(&self) {
        self.state.fetch_sub(CALL, Ordering::SeqCst);
    }

    fn forbid(&self) {
        self.state.fetch_or(REMOVED, Ordering::SeqCst);
    }

    fn are_over(&self) -> bool {
        self.state.load(Ordering::SeqCst) == REMOVED
    }
}

impl<T: ?Sized> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            function: self.function.clone(),
            calls: self.calls.clone(),
        }
    }
}

impl<T: ?Sized> Entry<T> {
    pub(crate) fn new(function: Arc<T>) -> Self {
        Self {
            id: fresh_id(),
            function: Kept::new(function),
            calls: None,
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Calls the function, unless it was removed, or this thread already runs on its behalf.
    /// Catches its panic.
    pub(crate) fn call(&self, call: impl FnOnce(&T)) {
        if muted::contains(self.id) {
            return;
        }
        let calls = self.calls.as_deref();
        if !calls.is_none_or(Calls::begin) {
            return;
        }
        if let Some(function) = self.function.get() {
            run_muted(self.id, || call(function));
        }
        if let Some(calls) = calls {
            calls.end();
        }
    }
}

/// Returns an id for a function of a user.
pub(crate) fn fresh_id() -> u64 {
    static NEXT_ID: AtomicU64 = AtomicU64::new(1);

    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// Runs code of the entry `id`. That entry is not called for events that the code causes itself.
///
/// Catches a panic of the code.
pub(crate) fn run_muted(id: u64, f: impl FnOnce()) {
    muted::mute(&[id], || unwind::contain(f));
}

impl<T: ?Sized> Registry<T> {
    /// Registers a function. Returns the id for [`remove`](Self::remove).
    pub(crate) fn add(&self, function: Arc<T>) -> u64 {
        let mut entry = Entry::new(function);
        entry.calls = Some(Arc::default());
        let id = entry.id;
        self.change(|entries| entries.push(entry));
        id
    }

    /// Removes a function. Returns whether it was registered.
    pub(crate) fn remove(&self, id: u64) -> bool {
        self.take_out(id).is_some()
    }

    /// As `remove`. If other threads are running the function, waits until they have returned.
    pub(crate) fn remove_and_wait(&self, id: u64) -> bool {
        let Some(calls) = self.take_out(id) else {
            return false;
        };
        // A thread that runs on behalf of the function would wait for itself.
        while !calls.are_over() && !muted::contains(id) {
            thread::sleep(POLL_INTERVAL);
        }
        true
    }

    /// Takes the function out of the list. No thread begins to call it after that.
    fn take_out(&self, id: u64) -> Option<Arc<Calls>> {
        let mut taken = None;
        self.change(|entries| {
            let place = entries.iter().position(|entry| entry.id == id);
            taken = place.and_then(|place| entries.remove(place).calls.clone());
        });
        let calls: Arc<Calls> = taken?;
        calls.forbid();
        Some(calls)
    }

    /// Replaces the list. Drops the old list outside the lock, because that can drop functions.
    fn change(&self, edit: impl FnOnce(&mut Vec<Entry<T>>)) {
        let mut list = lock(&self.list);
        let mut entries = list.as_deref().unwrap_or_default().to_vec();
        edit(&mut entries);
        self.count.store(entries.len(), Ordering::Relaxed);
        let old = list.replace(entries.into());
        drop(list);
        drop(old);
    }

    /// Whether no function is registered. Costs one relaxed load.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Returns the current entries.
    ///
    /// Returns `None` in a forked child if a thread of the parent held the lock at the fork.
    pub(crate) fn now(&self) -> Option<Arc<[Entry<T>]>> {
        match try_lock(&self.list) {
            Some(list) => list.clone(),
            None if forked::is_child() => None,
            None => lock(&self.list).clone(),
        }
    }
}
