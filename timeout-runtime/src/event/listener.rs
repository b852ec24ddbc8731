//! Registers listeners and delivers events to them.

use std::sync::Arc;

use crate::registry::{Entry, Registered, Registration, Registry};
use crate::sync::one_per_process;

use super::Event;

/// The function of a listener.
pub(crate) type Listen = dyn Fn(&Event<'_>) + Send + Sync;

one_per_process! {
    static LISTENERS: Registry<Listen> = Registry::new();
}

/// Registers a listener, which receives each event of this process.
///
/// A listener runs on the thread that ends the call, outside any call. It may register and remove
/// listeners, and make calls itself; it does not receive the events of those calls. A listener
/// that blocks delays only the call of its event. A panic in a listener is caught and has no
/// effect.
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
pub fn add_listener(listen: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Registration {
    Registration::new(RegisteredListener(LISTENERS.add(Arc::new(listen))))
}

/// The id of a registered listener.
struct RegisteredListener(u64);

impl Registered for RegisteredListener {
    fn remove(&self) -> bool {
        LISTENERS.remove(self.0)
    }

    fn remove_and_wait(&self) -> bool {
        LISTENERS.remove_and_wait(self.0)
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

/// Whether an event would reach a listener. Costs one relaxed load if there are none.
#[inline]
pub(crate) fn has_listeners(own: Option<&Own>) -> bool {
    own.is_some() || !LISTENERS.is_empty()
}

/// Delivers `event` to the policy's own listener, then to all registered listeners. Called outside
/// any call.
pub(crate) fn tell(own: Option<&Own>, event: &Event<'_>) {
    let deliver = |listener: &Entry<Listen>| listener.call(|listen| listen(event));
    if let Some(Own(own)) = own {
        deliver(own);
    }
    LISTENERS.for_each(deliver);
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;
