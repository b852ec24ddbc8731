//! `std` or `loom`, chosen here alone.
//!
//! What is model-checked takes its primitives from here and is a plain value: it can be made inside a model. Statics, `Weak`
//! and thread-locals, which loom has no or other forms of, come from `std` everywhere.

#[cfg(not(all(test, timeout_loom)))]
pub(crate) use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(all(test, timeout_loom))]
pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic elsewhere: no user code runs under our locks, so what they guard is whole.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
