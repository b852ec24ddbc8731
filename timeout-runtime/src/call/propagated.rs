//! State that propagates from the caller's thread to the worker or task of the operation.

#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

use crate::muted;
use crate::propagator::Captures;
use crate::unwind::{self, Payload};

use super::report::ReportBuilder;

/// The part that is the same for workers and tasks. Usually empty.
pub(crate) struct Propagated(Option<Box<PropagatedState>>);

struct PropagatedState {
    muted: Vec<u64>,
    captures: Captures,
}

impl Propagated {
    /// Captures the state of the current thread.
    pub(crate) fn capture() -> Self {
        let (muted, captures) = (muted::all(), Captures::capture());
        let is_nothing = muted.is_empty() && captures.is_nothing();
        Self((!is_nothing).then(|| Box::new(PropagatedState { muted, captures })))
    }

    /// Runs `f` with the caller's muted functions and with the captured values.
    pub(crate) fn on_behalf<T>(&mut self, f: impl FnOnce(&mut Captures) -> T) -> T {
        match self.0.as_deref_mut() {
            None => f(&mut Captures::default()),
            Some(PropagatedState { muted, captures }) => muted::mute(muted, || f(captures)),
        }
    }
}

impl Drop for Propagated {
    fn drop(&mut self) {
        self.on_behalf(Captures::let_go);
    }
}

/// The state for a worker. It is released when the operation ends.
pub(crate) struct PropagatedToWorker {
    propagated: Propagated,
    #[cfg(feature = "tokio")]
    runtime: Option<Handle>,
}

impl PropagatedToWorker {
    pub(crate) fn capture() -> Self {
        Self {
            propagated: Propagated::capture(),
            #[cfg(feature = "tokio")]
            runtime: Handle::try_current().ok(),
        }
    }

    /// As [`Propagated::on_behalf`].
    pub(crate) fn on_behalf<T>(&mut self, f: impl FnOnce(&mut Captures) -> T) -> T {
        self.propagated.on_behalf(f)
    }

    /// Runs the operation inside the runtime of the caller and the captured context. Then calls
    /// `after` outside of both, with the operation's panic if it had one. The caller's muted
    /// functions stay muted in both.
    pub(crate) fn within<'a>(
        mut self,
        mut builder: ReportBuilder<'a>,
        op: &dyn Fn(&mut ReportBuilder<'a>),
        after: impl FnOnce(Option<Payload>, ReportBuilder<'a>, &mut Captures),
    ) {
        self.propagated.on_behalf(|captures| {
            let mut panic = None;
            // An operation that leaks or reorders its own runtime guards makes leaving the runtime
            // panic. That counts as a panic of the operation.
            let late = unwind::panic_of(&mut || {
                #[cfg(feature = "tokio")]
                let _inside = self.runtime.as_ref().map(Handle::enter);
                panic = captures.inside(&mut || op(&mut builder));
            });
            if late.is_some() {
                unwind::drop_catching(std::mem::replace(&mut panic, late));
            }
            // Released before the caller continues, which may shut the runtime down.
            #[cfg(feature = "tokio")]
            drop(self.runtime);
            after(panic, builder, captures);
        });
    }
}
