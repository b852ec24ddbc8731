//! What the caller's thread hands to whoever runs the operation elsewhere.

#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

use crate::muted;
use crate::propagator::Captures;
use crate::unwind::{self, Payload};

use super::report::Found;

/// What goes along to a worker and to a task alike; mostly nothing.
pub(crate) struct Propagated(Option<Box<PropagatedState>>);

struct PropagatedState {
    muted: Vec<u64>,
    taken: Captures,
}

impl Propagated {
    /// Captures at the call.
    pub(crate) fn capture() -> Self {
        let (muted, taken) = (muted::all(), Captures::capture());
        let is_nothing = muted.is_empty() && taken.is_nothing();
        Self((!is_nothing).then(|| Box::new(PropagatedState { muted, taken })))
    }

    /// Runs `f` for the caller's listeners, with what propagators have taken propagated.
    pub(crate) fn on_behalf<T>(&mut self, f: impl FnOnce(&mut Captures) -> T) -> T {
        match self.0.as_deref_mut() {
            None => f(&mut Captures::default()),
            Some(PropagatedState { muted, taken }) => muted::mute(muted, || f(taken)),
        }
    }
}

impl Drop for Propagated {
    fn drop(&mut self) {
        self.on_behalf(Captures::let_go);
    }
}

/// What goes along to a worker, for the length of the operation only.
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

    /// Runs the operation as the caller's thread would, inside its runtime and what propagators have taken propagated, and then `after` with its panic, if it had one,
    /// outside. Either works for the caller's listeners.
    pub(crate) fn within<'a>(
        mut self,
        mut found: Found<'a>,
        op: &dyn Fn(&mut Found<'a>),
        after: impl FnOnce(Option<Payload>, Found<'a>, &mut Captures),
    ) {
        self.propagated.on_behalf(|taken| {
            let mut panic = None;
            // An operation can make leaving the runtime panic, by what it does with guards of its own: that is its panic.
            let late = unwind::panic_of(&mut || {
                #[cfg(feature = "tokio")]
                let _inside = self.runtime.as_ref().map(Handle::enter);
                panic = taken.inside(&mut || op(&mut found));
            });
            if late.is_some() {
                unwind::drop_catching(std::mem::replace(&mut panic, late));
            }
            // By then the runtime may be shut down.
            #[cfg(feature = "tokio")]
            drop(self.runtime);
            after(panic, found, taken);
        });
    }
}
