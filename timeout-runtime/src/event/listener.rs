//! Listeners: who hears of events, and the one way in which they are told.

use std::fmt;
use std::sync::Arc;

use crate::frame;
use crate::registry::{Entry, Registry};
use crate::sync::{AtomicUsize, Mutex, one_per_process};

use super::Event;

/// Who listens.
pub(crate) type Listen = dyn Fn(&Event<'_>) + Send + Sync;

one_per_process! {
    static LISTENERS: Registry<Listen> = Registry {
        list: Mutex::new(None),
        count: AtomicUsize::new(0),
    };
}

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
    ListenerHandle {
        id: Some(LISTENERS.add(Arc::new(listen))),
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
            LISTENERS.remove(id);
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
pub(crate) struct Own(Entry<Listen>);

impl Own {
    pub(crate) fn new(listen: Arc<Listen>) -> Self {
        Self(Entry::new(listen))
    }
}

/// Whether anybody would hear of an event. One relaxed load where nobody listens.
#[inline]
pub(crate) fn has_listeners(own: Option<&Own>) -> bool {
    own.is_some() || !LISTENERS.is_empty()
}

/// Tells `event` to the policy's own listener and to all registered ones.
pub(crate) fn tell(own: Option<&Own>, event: &Event<'_>) {
    let registered = LISTENERS.now();
    let registered = registered.as_deref().unwrap_or_default();
    frame::outside(|| {
        for listener in own.map(|Own(own)| own).into_iter().chain(registered) {
            listener.call(|listen| listen(event));
        }
    });
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;
