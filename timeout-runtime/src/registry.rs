//! [`Registry`]: what users have registered with this process, called under no lock.

use std::sync::Arc;

use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock, try_lock};
use crate::unwind::{self, Kept};
use crate::{forked, muted};

/// Functions of users, called in the order in which they came.
pub(crate) struct Registry<T: ?Sized> {
    /// Replaced as a whole, so that it is gone through without the lock.
    pub(crate) list: Mutex<Option<Arc<[Entry<T>]>>>,
    pub(crate) count: AtomicUsize,
}

/// One of them.
pub(crate) struct Entry<T: ?Sized> {
    id: u64,
    // Several lists that go at once drop several functions, whose destructors may all panic.
    function: Kept<Arc<T>>,
}

impl<T: ?Sized> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            function: self.function.clone(),
        }
    }
}

impl<T: ?Sized> Entry<T> {
    pub(crate) fn new(function: Arc<T>) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);

        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            function: Kept::new(function),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Calls the function, unless this is what it causes itself. A panic ends here.
    pub(crate) fn call(&self, call: impl FnOnce(&T)) {
        if muted::contains(self.id) {
            return;
        }
        if let Some(function) = self.function.get() {
            alone(self.id, || call(function));
        }
    }
}

/// Runs what belongs to the entry `id`, so that it is not called for what that causes. A panic ends here.
pub(crate) fn alone(id: u64, f: impl FnOnce()) {
    muted::mute(&[id], || unwind::contain(f));
}

impl<T: ?Sized> Registry<T> {
    /// Registers a function; what to remove it by.
    pub(crate) fn add(&self, function: Arc<T>) -> u64 {
        let entry = Entry::new(function);
        let id = entry.id;
        self.change(|entries| entries.push(entry));
        id
    }

    pub(crate) fn remove(&self, id: u64) {
        self.change(|entries| entries.retain(|entry| entry.id != id));
    }

    /// The old list, and with it perhaps a function, is dropped outside the lock.
    fn change(&self, edit: impl FnOnce(&mut Vec<Entry<T>>)) {
        let mut list = lock(&self.list);
        let mut entries = list.as_deref().unwrap_or_default().to_vec();
        edit(&mut entries);
        self.count.store(entries.len(), Ordering::Relaxed);
        let old = list.replace(entries.into());
        drop(list);
        drop(old);
    }

    /// Whether there is none. One relaxed load.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Those that are there now. In a forked child nobody, if a thread of the parent has held the list at the fork.
    pub(crate) fn now(&self) -> Option<Arc<[Entry<T>]>> {
        match try_lock(&self.list) {
            Some(list) => list.clone(),
            None if forked::is_child() => None,
            None => lock(&self.list).clone(),
        }
    }
}
