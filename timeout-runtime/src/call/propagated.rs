//! State that propagates from the caller's thread to the worker or task of the operation.

#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

use crate::context::propagator::Captures;
use crate::probe::ProbeHandle;
use crate::registry::muted;
use crate::time::test_clock::Participant;
use crate::unwind::{self, Payload};

use super::report::ReportBuilder;

/// What propagates. Empty outside a runtime, without listeners that run, and without propagators.
pub(crate) struct Propagated(Option<Box<PropagatedState>>);

struct PropagatedState {
    muted: Vec<u64>,
    captures: Captures,
    probe: ProbeHandle,
    /// The operation on a worker, if it is on a test clock.
    participant: Option<Participant>,
    /// For a worker only: a task runs inside its runtime anyway.
    #[cfg(feature = "tokio")]
    runtime: Option<Handle>,
}

impl Propagated {
    /// Captures the state of the current thread for a task.
    #[cfg(feature = "tokio")]
    pub(crate) fn to_task() -> Self {
        Self::of(PropagatedState::capture())
    }

    /// Captures the state of the current thread for a worker, which runs the operation `name`.
    pub(crate) fn to_worker(name: &'static str) -> Self {
        let mut state = PropagatedState::capture();
        state.participant = Participant::of_operation(name);
        #[cfg(feature = "tokio")]
        let state = PropagatedState {
            runtime: Handle::try_current().ok(),
            ..state
        };
        Self::of(state)
    }

    fn of(state: PropagatedState) -> Self {
        Self((!state.is_empty()).then(|| Box::new(state)))
    }

    /// The operation as a participant of its test clock.
    pub(crate) fn participant(&self) -> Option<&Participant> {
        self.0.as_ref()?.participant.as_ref()
    }

    /// Runs `f` with the caller's muted functions and with the captured values.
    pub(crate) fn on_behalf<T>(&mut self, f: impl FnOnce(&mut Captures) -> T) -> T {
        match self.0.as_deref_mut() {
            None => f(&mut Captures::default()),
            Some(state) => {
                let _probe = state.probe.enter();
                muted::mute(&state.muted, || f(&mut state.captures))
            }
        }
    }

    /// Runs `f` as `on_behalf`, with the captured state installed. Returns its panic.
    #[cfg(feature = "tokio")]
    pub(crate) fn inside(&mut self, f: &mut dyn FnMut()) -> Option<Payload> {
        self.on_behalf(|captures| captures.inside(f))
    }

    /// Runs the operation inside the runtime of the caller and the captured context. Then calls
    /// `after` outside of both, with the operation's panic if it had one. The caller's muted
    /// functions stay muted in both.
    pub(crate) fn within<'a>(
        mut self,
        mut builder: ReportBuilder<'a>,
        op: &mut dyn FnMut(&mut ReportBuilder<'a>),
        after: impl FnOnce(Option<Payload>, ReportBuilder<'a>, &mut Captures),
    ) {
        #[cfg(feature = "tokio")]
        let runtime = self.0.as_mut().and_then(|state| state.runtime.take());
        self.on_behalf(|captures| {
            let mut panic = None;
            // An operation that leaks or reorders its own runtime guards makes leaving the runtime
            // panic. That counts as a panic of the operation.
            let late = unwind::panic_of(&mut || {
                #[cfg(feature = "tokio")]
                let _inside = runtime.as_ref().map(Handle::enter);
                panic = captures.inside(&mut || op(&mut builder));
            });
            if late.is_some() {
                unwind::drop_catching(std::mem::replace(&mut panic, late));
            }
            // Released before the caller continues, which may shut the runtime down.
            #[cfg(feature = "tokio")]
            drop(runtime);
            after(panic, builder, captures);
        });
    }
}

impl Drop for Propagated {
    fn drop(&mut self) {
        self.on_behalf(Captures::let_go);
    }
}

impl PropagatedState {
    fn capture() -> Self {
        Self {
            muted: muted::all(),
            captures: Captures::capture(),
            probe: ProbeHandle::here(),
            participant: None,
            #[cfg(feature = "tokio")]
            runtime: None,
        }
    }

    fn is_empty(&self) -> bool {
        #[cfg(feature = "tokio")]
        if self.runtime.is_some() {
            return false;
        }
        self.muted.is_empty()
            && self.captures.is_nothing()
            && self.participant.is_none()
            && self.probe.is_none()
    }
}
