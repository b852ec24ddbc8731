//! [`InForce`]: the limit that replaces the one in the code, kept at the policy of a function.
//!
//! 1. A policy remembers which generation of all limits it has seen. A call that finds another one
//!    asks the store, under its lock. So a call whose limits have not changed takes no lock and
//!    writes nothing.
//! 2. A generation is an even number. A policy whose limit is replaced remembers it plus one. So
//!    where no limit is replaced, a call makes one comparison.
//! 3. A generation is left only under the lock of the store. So the policy stores a limit together
//!    with the generation that it belongs to.

use std::sync::TryLockError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::forked;
use crate::sync::AtomicU64;

use super::{GENERATION, STORE, Store};

/// Whether the limit is replaced, beside the generation.
const REPLACED: u32 = 1;

/// The replacement of a limit, and the generation that it belongs to.
#[derive(Debug)]
pub(crate) struct InForce {
    seen: AtomicU32,
    /// In nanoseconds; the greatest number is no limit. Valid if the limit is replaced.
    nanos: AtomicU64,
}

impl Clone for InForce {
    /// The clone asks the store itself.
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl InForce {
    pub(crate) const fn new() -> Self {
        Self {
            seen: AtomicU32::new(0),
            nanos: AtomicU64::new(0),
        }
    }

    /// Whether the limit in the code is in force, as far as the policy knows.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.seen.load(Ordering::Relaxed) == GENERATION.load(Ordering::Relaxed)
    }

    /// The limit that replaces `own`, the one in the code, for a call that begins now.
    /// `Duration::MAX` means no limit.
    #[cold]
    pub(crate) fn replacement(
        &self,
        name: &'static str,
        own: Option<Duration>,
    ) -> Option<Duration> {
        // Acquire: the limit that is read below is at least as new as this generation.
        let mut seen = self.seen.load(Ordering::Acquire);
        if seen & !REPLACED != GENERATION.load(Ordering::Relaxed) {
            seen = self.ask(name, own);
        }
        (seen & REPLACED != 0).then(|| match self.nanos.load(Ordering::Relaxed) {
            u64::MAX => Duration::MAX,
            nanos => Duration::from_nanos(nanos),
        })
    }

    /// Reads the limit from the store. Returns what `seen` is now.
    fn ask(&self, name: &'static str, own: Option<Duration>) -> u32 {
        let mut store = match STORE.try_lock() {
            Ok(store) => store,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A thread that does not exist here held the lock at the fork.
            Err(TryLockError::WouldBlock) if forked::is_child() => return 0,
            Err(TryLockError::WouldBlock) => Store::lock(),
        };
        store.read_environment();
        store.in_code.insert(name, own.unwrap_or(Duration::MAX));
        let mut seen = GENERATION.load(Ordering::Relaxed);
        if let Some((limit, _)) = store.replacement(name) {
            // 584 years are no limit.
            let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
            self.nanos.store(nanos, Ordering::Relaxed);
            seen |= REPLACED;
        }
        self.seen.store(seen, Ordering::Release);
        seen
    }
}
