//! [`Registry`]: functions that users register for the whole process, called outside all locks.
//! [`Entry`] is one of them, or a policy's own.

pub(crate) mod muted;
mod registration;

use std::sync::Arc;
use std::sync::atomic::fence;
use std::thread;
use std::time::Duration;

use crate::forked;
use crate::memory::Shrink;
use crate::shards::{self, Shards, shards};
use crate::sync::{AtomicU64, AtomicUsize, Lock, Mutex, Ordering, const_fn, lock, try_lock};
use crate::unwind::{self, Kept};

pub(crate) use registration::Registered;
pub use registration::Registration;

/// How often a thread checks whether other threads have left a removed function.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Functions of users, in the order of registration.
///
/// Each shard has a list of its own, so that threads that call the functions at the same time write
/// to different cache lines.
pub(crate) struct Registry<T: ?Sized> {
    lists: Shards<Mutex<List<T>>>,
    count: AtomicUsize,
    /// Held while the lists change, one after another.
    change: Mutex<()>,
}

/// In the order of the ids.
type List<T> = Vec<Arc<Entry<T>>>;

/// A function in one list, or a policy's own one. A thread that calls the function owns the entry
/// for that time.
pub(crate) struct Entry<T: ?Sized> {
    id: u64,
    // Its destructor can panic.
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
        Self {
            id: fresh_id(),
            function: Kept::new(function),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Calls the function, unless this thread already runs on its behalf. Catches its panic.
    pub(crate) fn call(&self, call: impl FnOnce(&T)) {
        if let Some(function) = self.function.get().filter(|_| !muted::contains(self.id)) {
            run_muted(self.id, || call(function));
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
    const_fn! {
        /// An empty registry.
        pub(crate) fn new() -> Self {
            Self {
                lists: shards!(Mutex::new(Vec::new()); shards::MANY),
                count: AtomicUsize::new(0),
                change: Mutex::new(()),
            }
        }
    }

    /// Registers a function. Returns the id for [`remove`](Self::remove).
    pub(crate) fn add(&self, function: Arc<T>) -> u64 {
        let _changing = lock(&self.change);
        // The lists are in the order of the ids.
        let entry = Entry::new(function);
        for list in self.lists.all() {
            let entry = Arc::new(entry.clone());
            lock(list).push(entry);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        entry.id
    }

    /// Removes a function. Returns whether it was registered.
    pub(crate) fn remove(&self, id: u64) -> bool {
        !self.take_out(id).is_empty()
    }

    /// As `remove`. If other threads are running the function, waits until they have returned.
    pub(crate) fn remove_and_wait(&self, id: u64) -> bool {
        let entries = self.take_out(id);
        let is_called = || entries.iter().any(|entry| Arc::strong_count(entry) > 1);
        // A thread that runs on behalf of the function would wait for itself.
        while is_called() && !muted::contains(id) {
            thread::sleep(POLL_INTERVAL);
        }
        // What the threads did before they dropped their entries happened before this.
        fence(Ordering::Acquire);
        !entries.is_empty()
    }

    /// Takes the function out of all lists. No thread begins to call it after that. The entries are
    /// dropped outside the locks, because that drops the function.
    fn take_out(&self, id: u64) -> Vec<Arc<Entry<T>>> {
        let mut taken = Vec::new();
        let _changing = lock(&self.change);
        for list in self.lists.all() {
            let mut list = lock(list);
            if let Some(place) = list.iter().position(|entry| entry.id == id) {
                taken.push(list.remove(place));
                list.shrink();
            }
        }
        if !taken.is_empty() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        taken
    }

    /// Whether no function is registered. Costs one relaxed load.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Calls `f` for each function that is registered now, outside the lock.
    ///
    /// A function that is removed meanwhile is left out. So is one that is added meanwhile: a
    /// function that adds another one would never end.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&Entry<T>)) {
        let Some((mut entry, last)) = self.first_and_last() else {
            return;
        };
        loop {
            f(&entry);
            let id = entry.id;
            drop(entry);
            let next = (id < last).then(|| self.find(|entry| entry.id > id && entry.id <= last));
            match next.flatten() {
                Some(next) => entry = next,
                None => return,
            }
        }
    }

    /// The first entry, and the id of the last one.
    fn first_and_last(&self) -> Option<(Arc<Entry<T>>, u64)> {
        let list = self.my_list()?;
        Some((list.first()?.clone(), list.last()?.id))
    }

    fn find(&self, is_wanted: impl Fn(&Entry<T>) -> bool) -> Option<Arc<Entry<T>>> {
        let list = self.my_list()?;
        list.iter().find(|entry| is_wanted(entry)).cloned()
    }

    /// The list of this thread.
    ///
    /// Returns `None` in a forked child if a thread of the parent held the lock at the fork.
    fn my_list(&self) -> Option<<Mutex<List<T>> as Lock>::Guard<'_>> {
        let list = self.lists.mine();
        match try_lock(list) {
            Some(list) => Some(list),
            None if forked::is_child() => None,
            None => Some(lock(list)),
        }
    }
}
