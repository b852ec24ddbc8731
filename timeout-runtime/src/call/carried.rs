//! What the caller's thread hands to whoever runs the operation elsewhere.

#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

use crate::frame;
use crate::unwind::{self, Payload};

use super::sides::Found;

/// Taken at the call, for the length of the operation only.
pub(crate) struct Carried {
    muted: Box<[u64]>,
    #[cfg(feature = "tokio")]
    runtime: Option<Handle>,
}

impl Carried {
    pub(crate) fn capture() -> Self {
        Self {
            muted: frame::muted().into(),
            #[cfg(feature = "tokio")]
            runtime: Handle::try_current().ok(),
        }
    }

    /// Runs the operation as the caller's thread would, inside its runtime, and then `after` with its panic, if it had one, outside. Either
    /// works for the caller's listeners.
    pub(crate) fn within<'a>(
        self,
        mut found: Found<'a>,
        op: impl FnOnce(&mut Found<'a>),
        after: impl FnOnce(Option<Payload>, Found<'a>),
    ) {
        frame::mute(&self.muted, || {
            // An operation can make leaving the runtime panic, by what it does with guards of its own: that is its panic.
            let ended = unwind::catch(|| {
                #[cfg(feature = "tokio")]
                let _inside = self.runtime.as_ref().map(Handle::enter);
                op(&mut found);
            });
            // By then the runtime may be shut down.
            #[cfg(feature = "tokio")]
            drop(self.runtime);
            after(ended.err(), found);
        });
    }
}
