//! Propagators: pass thread-bound state of users from the caller's thread to the operation.

use std::sync::Arc;

use crate::registry::{self, Registered, Registration, Registry};
use crate::sync::one_per_process;
use crate::unwind::{self, Payload};

use super::frame;

type Capture = dyn Fn() -> Box<dyn Enter> + Send + Sync;

one_per_process! {
    static PROPAGATORS: Registry<Capture> = Registry::new();
}

/// Registers a propagator, which passes thread-bound state, such as the current trace, to
/// operations on a worker or in a task.
///
/// 1. `capture` runs on the caller's thread when such a call starts. It returns a closure.
/// 2. The closure runs on the thread of the operation: before an operation on a worker, and before
///    each poll of a task. It installs the state and returns a guard.
/// 3. The guard is dropped after the operation or the poll, also after a panic, and before the
///    caller gets the result.
///
/// The propagator that was added first installs its state first and drops its guard last. The late
/// event of an abandoned operation is emitted, and its late result is dropped, while the state is
/// installed. Token callbacks run without the state. Operations that run inline need no propagator,
/// because they run on the caller's thread.
///
/// Removing a propagator does not affect calls that have started: they keep the state that they
/// captured.
///
/// The functions of a propagator run outside any call, and their time counts towards the call's
/// limit. A propagator is not called for calls that it makes itself.
///
/// # Panics
///
/// A panic in one of these functions is caught. It does not change the outcome; the operation runs
/// without the state that was not captured or installed.
///
/// # Examples
///
/// ```
/// use std::cell::Cell;
/// use timeout_runtime::{TimeoutError, add_propagator, timeout};
///
/// thread_local! {
///     static TENANT: Cell<u32> = const { Cell::new(0) };
/// }
///
/// /// Restores the previous tenant.
/// struct Restore(u32);
///
/// impl Drop for Restore {
///     fn drop(&mut self) {
///         TENANT.set(self.0);
///     }
/// }
///
/// let _tenant = add_propagator(|| {
///     let tenant = TENANT.get();
///     move || Restore(TENANT.replace(tenant))
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
/// For OpenTelemetry's context:
/// `add_propagator(|| { let context = Context::current(); move || context.clone().attach() })`.
pub fn add_propagator<E, L>(capture: impl Fn() -> E + Send + Sync + 'static) -> Registration
where
    E: FnMut() -> L + Send + 'static,
{
    let capture = move || Box::new(capture()) as Box<dyn Enter>;
    Registration::new(RegisteredPropagator(PROPAGATORS.add(Arc::new(capture))))
}

/// The id of a registered propagator.
struct RegisteredPropagator(u64);

impl Registered for RegisteredPropagator {
    fn remove(&self) -> bool {
        PROPAGATORS.remove(self.0)
    }

    fn remove_and_wait(&self) -> bool {
        PROPAGATORS.remove_and_wait(self.0)
    }
}

/// The closure that one propagator returned, with its types erased.
trait Enter: Send {
    /// Installs the state, runs `f`, which must not panic, and drops the guard.
    ///
    /// Runs each function of the user through `run_step`.
    fn around(&mut self, run_step: &dyn Fn(&mut dyn FnMut()), f: &mut dyn FnMut());
}

impl<E: FnMut() -> L + Send, L> Enter for E {
    fn around(&mut self, run_step: &dyn Fn(&mut dyn FnMut()), f: &mut dyn FnMut()) {
        let mut guard = None;
        run_step(&mut || guard = Some(self()));
        f();
        run_step(&mut || drop(guard.take()));
    }
}

struct Captured {
    /// The id of the propagator.
    id: u64,
    enter: Option<Box<dyn Enter>>,
}

impl Captured {
    fn around(&mut self, f: &mut dyn FnMut()) {
        match &mut self.enter {
            Some(enter) => enter.around(&|step| run_step(self.id, step), f),
            None => f(),
        }
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        let enter = &mut self.enter;
        run_step(self.id, || drop(enter.take()));
    }
}

/// Runs a function of the propagator `id`, outside any call.
fn run_step(id: u64, step: impl FnOnce()) {
    frame::outside(|| registry::run_muted(id, step));
}

/// The captured state for one operation.
#[derive(Default)]
pub(crate) struct Captures(Vec<Captured>);

impl Captures {
    /// Calls all propagators, on the caller's thread.
    #[inline]
    pub(crate) fn capture() -> Self {
        if PROPAGATORS.is_empty() {
            Self::default()
        } else {
            Self::capture_all()
        }
    }

    #[cold]
    fn capture_all() -> Self {
        let mut captured = Vec::new();
        frame::outside(|| {
            PROPAGATORS.for_each(|propagator| {
                propagator.call(|capture| {
                    captured.push(Captured {
                        id: propagator.id(),
                        enter: Some(capture()),
                    });
                });
            });
        });
        Self(captured)
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs `f` with all captured state installed. Returns the panic of `f`, if any.
    pub(crate) fn inside(&mut self, f: &mut dyn FnMut()) -> Option<Payload> {
        around(&mut self.0, f)
    }

    /// Drops the captured state.
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
