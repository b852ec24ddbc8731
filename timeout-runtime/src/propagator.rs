//! Propagators: what users take along from the caller's thread to where the operation runs.

use std::fmt;
use std::sync::Arc;

use crate::frame;
use crate::registry::{self, Registry};
use crate::sync::{AtomicUsize, Mutex, one_per_process};
use crate::unwind::{self, Payload};

type Capture = dyn Fn() -> Box<dyn Enter> + Send + Sync;

one_per_process! {
    static PROPAGATORS: Registry<Capture> = Registry {
        list: Mutex::new(None),
        count: AtomicUsize::new(0),
    };
}

/// Takes along what is bound to the caller's thread, such as the current trace, to operations that run on a worker or in a task.
///
/// `capture` is called on the caller's thread, when a call begins whose operation runs elsewhere. What it gives, a closure, is called where the operation runs: before
/// an operation on a worker, and before each poll of a task. It enters, and what it returns leaves when it is dropped: after the operation or the poll, also after a
/// panic, and before the caller gets the answer. With several propagators, the one that was added first is entered first and left last.
/// A late ending is told, and what it leaves is dropped, inside as well. Callbacks of tokens run outside.
/// Operations that run inline, on their caller's thread, need none of this.
///
/// All of it runs outside any call, within the call's limit, and not for calls that it makes itself. A panic changes no verdict: what could not be captured or
/// entered is not there for this operation.
///
/// ```
/// use std::cell::Cell;
/// use timeout_runtime::{TimeoutError, add_propagator, timeout};
///
/// thread_local! {
///     static TENANT: Cell<u32> = const { Cell::new(0) };
/// }
///
/// /// Puts back the tenant that was there before.
/// struct Leave(u32);
///
/// impl Drop for Leave {
///     fn drop(&mut self) {
///         TENANT.set(self.0);
///     }
/// }
///
/// let _tenant = add_propagator(|| {
///     let tenant = TENANT.get();
///     move || Leave(TENANT.replace(tenant))
/// });
///
/// #[timeout(name = "bill", secs = 5)]
/// fn bill() -> Result<u32, TimeoutError> {
///     Ok(TENANT.get()) // on a worker
/// }
///
/// TENANT.set(7);
/// assert_eq!(bill()?, 7);
/// # Ok::<(), TimeoutError>(())
/// ```
///
/// OpenTelemetry's context is taken along by
/// `add_propagator(|| { let context = Context::current(); move || context.clone().attach() })`.
pub fn add_propagator<E, L>(capture: impl Fn() -> E + Send + Sync + 'static) -> PropagatorHandle
where
    E: FnMut() -> L + Send + 'static,
{
    let capture = move || Box::new(capture()) as Box<dyn Enter>;
    PropagatorHandle {
        id: Some(PROPAGATORS.add(Arc::new(capture))),
    }
}

/// A propagator in place; made by [`add_propagator`]. Dropping it removes the propagator: calls that have begun keep what they have captured, further ones
/// capture nothing.
#[must_use = "dropping the handle removes the propagator; bind it, as in `let _propagator = ..`, or call `forget()`"]
pub struct PropagatorHandle {
    id: Option<u64>,
}

impl PropagatorHandle {
    /// Keeps the propagator for as long as the process runs.
    pub fn forget(mut self) {
        self.id = None;
    }
}

impl Drop for PropagatorHandle {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            PROPAGATORS.remove(id);
        }
    }
}

impl fmt::Debug for PropagatorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PropagatorHandle").finish_non_exhaustive()
    }
}

/// What one propagator has captured, whatever the types of what enters and of what leaves.
trait Enter: Send {
    /// Enters, runs `f`, which does not panic, and leaves; each step of the user's through `alone`.
    fn around(&mut self, alone: &dyn Fn(&mut dyn FnMut()), f: &mut dyn FnMut());
}

impl<E: FnMut() -> L + Send, L> Enter for E {
    fn around(&mut self, alone: &dyn Fn(&mut dyn FnMut()), f: &mut dyn FnMut()) {
        let mut leave = None;
        alone(&mut || leave = Some(self()));
        f();
        alone(&mut || drop(leave.take()));
    }
}

struct Captured {
    /// Of the propagator.
    id: u64,
    enter: Option<Box<dyn Enter>>,
}

impl Captured {
    fn around(&mut self, f: &mut dyn FnMut()) {
        match &mut self.enter {
            Some(enter) => enter.around(&|step| alone(self.id, step), f),
            None => f(),
        }
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        let enter = &mut self.enter;
        alone(self.id, || drop(enter.take()));
    }
}

fn alone(id: u64, step: impl FnOnce()) {
    frame::outside(|| registry::alone(id, step));
}

/// What is taken along for one operation.
#[derive(Default)]
pub(crate) struct Captures(Vec<Captured>);

impl Captures {
    /// Asks all propagators, on the caller's thread.
    #[inline]
    pub(crate) fn capture() -> Self {
        if PROPAGATORS.is_empty() {
            Self::default()
        } else {
            Self::ask()
        }
    }

    #[cold]
    fn ask() -> Self {
        let mut taken = Vec::new();
        let propagators = PROPAGATORS.now();
        frame::outside(|| {
            for propagator in propagators.as_deref().unwrap_or_default() {
                propagator.call(|capture| {
                    taken.push(Captured {
                        id: propagator.id(),
                        enter: Some(capture()),
                    });
                });
            }
        });
        Self(taken)
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs `f` inside all that was captured. Its panic is given back.
    pub(crate) fn inside(&mut self, f: &mut dyn FnMut()) -> Option<Payload> {
        around(&mut self.0, f)
    }

    /// Drops what was captured.
    pub(crate) fn let_go(&mut self) {
        self.0.clear();
    }
}

fn around(captured: &mut [Captured], f: &mut dyn FnMut()) -> Option<Payload> {
    let Some((first, others)) = captured.split_first_mut() else {
        return unwind::panic_of(f);
    };
    let mut panic = None;
    first.around(&mut || panic = around(others, f));
    panic
}
