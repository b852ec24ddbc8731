//! `std` or `loom`, chosen here alone.
//!
//! What is model-checked takes its primitives from here and is a plain value: it can be made inside a model. Statics come from
//! `std` everywhere, and so do `Arc` and `Weak`, since loom has no `Weak`: a model switches threads around each operation
//! on an atomic or a lock, not around each count of a reference.

#[cfg(not(all(test, timeout_loom)))]
mod chosen {
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{AtomicU8, Ordering};
}

#[cfg(all(test, timeout_loom))]
mod chosen {
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};

    impl<T> super::Lock for Mutex<T> {
        type Inside = T;
        type Guard<'a>
            = loom::sync::MutexGuard<'a, T>
        where
            T: 'a;

        fn hold(&self) -> Self::Guard<'_> {
            self.lock().unwrap()
        }

        fn inside(&mut self) -> &mut T {
            self.get_mut().unwrap()
        }
    }
}

pub(crate) use chosen::*;

/// A thread-local that is there without a first use, and if it needs no drop, to the very end of its thread.
macro_rules! const_thread_local {
    ($(#[$attr:meta])* static $name:ident: $type:ty = $init:expr;) => {
        #[cfg(not(all(test, timeout_loom)))]
        std::thread_local! {
            $(#[$attr])*
            static $name: $type = const { $init };
        }
        #[cfg(all(test, timeout_loom))]
        loom::thread_local! {
            $(#[$attr])*
            static $name: $type = $init;
        }
    };
}

pub(crate) use const_thread_local;

use std::ops::DerefMut;
use std::sync::{Mutex as StdMutex, MutexGuard as StdGuard, PoisonError};

/// Takes a lock.
pub(crate) fn lock<L: Lock>(mutex: &L) -> L::Guard<'_> {
    mutex.hold()
}

/// A mutex that is locked also after a panic: no user code runs under our locks, so what they guard is whole.
pub(crate) trait Lock {
    /// What is guarded.
    type Inside;
    /// Gives the lock back when dropped.
    type Guard<'a>: DerefMut<Target = Self::Inside>
    where
        Self: 'a;

    /// Takes the lock.
    fn hold(&self) -> Self::Guard<'_>;

    /// What is guarded, where nobody else can hold the lock.
    fn inside(&mut self) -> &mut Self::Inside;
}

impl<T> Lock for StdMutex<T> {
    type Inside = T;
    type Guard<'a>
        = StdGuard<'a, T>
    where
        T: 'a;

    fn hold(&self) -> Self::Guard<'_> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inside(&mut self) -> &mut T {
        self.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
