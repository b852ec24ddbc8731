//! What the caller's thread hands to whoever runs the operation elsewhere.

#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

use crate::context;

/// Taken at the call, for the length of the operation only.
pub(crate) struct Carried {
    muted: Vec<u64>,
    #[cfg(feature = "tokio")]
    runtime: Option<Handle>,
}

impl Carried {
    pub(crate) fn capture() -> Self {
        Self {
            muted: context::muted(),
            #[cfg(feature = "tokio")]
            runtime: Handle::try_current().ok(),
        }
    }

    /// What a task of the same runtime needs of it.
    #[cfg(feature = "tokio")]
    pub(crate) fn into_muted(self) -> Vec<u64> {
        self.muted
    }

    /// Runs `f` as the caller's thread would, inside its runtime, and then `after` with what comes of it, outside. Either works for
    /// the caller's listeners.
    pub(crate) fn within<T>(self, f: impl FnOnce() -> T, after: impl FnOnce(T)) {
        context::mute(&self.muted, || {
            let made = {
                #[cfg(feature = "tokio")]
                let _inside = self.runtime.as_ref().map(Handle::enter);
                f()
            };
            // By then the runtime may be shut down.
            #[cfg(feature = "tokio")]
            drop(self.runtime);
            after(made);
        });
    }
}
