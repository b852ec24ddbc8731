//! Listeners: who hears of events, and the one way in which they are told.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::sync::{AtomicUsize, Mutex, Ordering, lock, one_per_process, try_lock};
use crate::unwind::{self, Kept};
use crate::{forked, frame};

use super::Event;

/// Who listens.
pub(crate) type Listen = dyn Fn(&Event<'_>) + Send + Sync;

#[derive(Clone)]
struct Entry {
    id: u64,
    listen: Arc<Listen>,
}

struct Listeners {
    /// In the order they came; replaced as a whole, so that an event is told without the lock.
    list: Mutex<Option<Arc<[Entry]>>>,
    count: AtomicUsize,
}

one_per_process! {
    static LISTENERS: Listeners = Listeners {
        list: Mutex::new(None),
        count: AtomicUsize::new(0),
    };
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Has `listen` called for each event of this process, on the thread that ends the call.
///
/// A listener runs outside any call. It may block, which holds up only the call it is told of, register and remove listeners, and
/// make calls of its own; it is skipped for the events that it causes itself. A panic ends in the listener.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use timeout_runtime::{EventKind, TimeoutError, add_listener, timeout};
///
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// let sink = Arc::clone(&seen);
/// let _listener = add_listener(move |event| {
///     sink.lock().unwrap().push(event.clone().into_owned());
/// });
///
/// #[timeout(name = "quick", secs = 5)]
/// fn quick() -> Result<u32, TimeoutError> {
///     Ok(7)
/// }
///
/// quick()?;
/// assert_eq!(seen.lock().unwrap()[0].kind, EventKind::Succeeded);
/// # Ok::<(), TimeoutError>(())
/// ```
pub fn add_listener(listen: impl Fn(&Event<'_>) + Send + Sync + 'static) -> ListenerHandle {
    let id = fresh_id();
    let entry = Entry {
        id,
        listen: Arc::new(listen),
    };
    LISTENERS.change(|entries| entries.push(entry));
    ListenerHandle { id: Some(id) }
}

/// A number for what is muted while it runs.
pub(super) fn fresh_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

impl Listeners {
    /// Who listens now. In a forked child nobody, if a thread of the parent has held the list at the fork.
    fn listening(&self) -> Option<Arc<[Entry]>> {
        match try_lock(&self.list) {
            Some(list) => list.clone(),
            None if forked::is_child() => None,
            None => lock(&self.list).clone(),
        }
    }

    /// Replaces the list; the old one, and with it perhaps a listener, is dropped outside the lock.
    fn change(&self, edit: impl FnOnce(&mut Vec<Entry>)) {
        let mut list = lock(&self.list);
        let mut entries = list.as_deref().unwrap_or_default().to_vec();
        edit(&mut entries);
        self.count.store(entries.len(), Ordering::Relaxed);
        let old = list.replace(entries.into());
        drop(list);
        unwind::dispose(old);
    }
}

/// A listener in place; made by [`add_listener`]. Dropping it removes the listener; one that is being called finishes, and is then
/// dropped by the thread that called it.
#[must_use = "dropping the handle removes the listener; bind it, as in `let _listener = ..`, or call `forget()`"]
pub struct ListenerHandle {
    id: Option<u64>,
}

impl ListenerHandle {
    /// Keeps the listener for as long as the process runs.
    pub fn forget(mut self) {
        self.id = None;
    }
}

impl Drop for ListenerHandle {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            LISTENERS.change(|entries| entries.retain(|entry| entry.id != id));
        }
    }
}

impl fmt::Debug for ListenerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerHandle").finish_non_exhaustive()
    }
}

/// A policy's own listener.
#[derive(Clone)]
pub(crate) struct Own {
    id: u64,
    listen: Kept<Arc<Listen>>,
}

impl Own {
    pub(crate) fn new(listen: Arc<Listen>) -> Self {
        Self {
            id: fresh_id(),
            listen: Kept::new(listen),
        }
    }
}

/// Whether anybody would hear of an event. One relaxed load where nobody listens.
#[inline]
pub(crate) fn is_heard(own: Option<&Own>) -> bool {
    own.is_some() || LISTENERS.count.load(Ordering::Relaxed) != 0
}

/// Tells `event` to the policy's own listener and to all registered ones.
pub(crate) fn tell(own: Option<&Own>, event: &Event<'_>) {
    let listeners = LISTENERS.listening();
    frame::outside(|| {
        if let Some(Own { id, listen }) = own
            && let Some(listen) = listen.get()
        {
            call(*id, &**listen, event);
        }
        for Entry { id, listen } in listeners.as_deref().unwrap_or_default() {
            call(*id, &**listen, event);
        }
    });
    unwind::dispose(listeners);
}

fn call(id: u64, listen: &Listen, event: &Event<'_>) {
    if !frame::is_muted(id) {
        frame::mute(&[id], || unwind::contain(|| listen(event)));
    }
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;
