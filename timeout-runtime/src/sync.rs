//! Synchronization primitives and threads, from `std`, or in a model from `loom` or `shuttle`.
//!
//! Only this file makes that choice. Model-checked code takes all primitives from here, and its
//! types are plain values that a model can create. Each run of a model creates the statics anew.
//!
//! `Arc` and `Weak` always come from `std`, because loom has no `Weak`. A model switches threads at
//! each operation on an atomic or a lock, but not at reference counts.

#[cfg(not(all(test, any(timeout_loom, timeout_shuttle))))]
mod chosen {
    use std::sync::{MutexGuard, PoisonError};
    use std::time::{Duration, Instant};

    pub(crate) use super::atomic_u64::AtomicU64 as AtomicNanos;
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
    pub(crate) use std::thread;

    pub(crate) const IS_MODEL: bool = false;

    #[inline]
    pub(crate) fn now() -> Instant {
        Instant::now()
    }

    const HAS_THREADS: bool = cfg!(not(target_family = "wasm")) || cfg!(target_feature = "atomics");

    #[derive(Default)]
    pub(crate) struct Condvar(std::sync::Condvar);

    impl Condvar {
        /// Waits until notified, for at most `longest`. May return early.
        pub(crate) fn wait<'a, T>(
            &self,
            mutex: &'a Mutex<T>,
            guard: MutexGuard<'a, T>,
            longest: Option<Duration>,
        ) -> MutexGuard<'a, T> {
            if !HAS_THREADS {
                // No other thread exists to notify this one, and `wait` of the standard library
                // panics on such a target.
                drop(guard);
                thread::sleep(longest.unwrap_or(Duration::from_secs(3600)));
                return mutex.lock().unwrap_or_else(PoisonError::into_inner);
            }
            let Some(longest) = longest else {
                let guard = self.0.wait(guard);
                return guard.unwrap_or_else(PoisonError::into_inner);
            };
            let waited = self.0.wait_timeout(guard, longest);
            waited.unwrap_or_else(PoisonError::into_inner).0
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }
    }
}

#[cfg(all(test, timeout_loom))]
mod chosen {
    pub(crate) use super::model_env::{Condvar, now, thread};
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::AtomicU64 as AtomicNanos;
    pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
    pub(crate) use loom::{lazy_static, thread_local};

    pub(crate) const IS_MODEL: bool = true;

    /// loom treats a `SeqCst` load like an `Acquire` load: it can miss a store that precedes it in
    /// the total order. A read-modify-write operation misses no store.
    #[derive(Default)]
    pub(crate) struct AtomicBool(loom::sync::atomic::AtomicBool);

    impl AtomicBool {
        pub(crate) fn new(value: bool) -> Self {
            Self(loom::sync::atomic::AtomicBool::new(value))
        }

        pub(crate) fn load(&self, order: Ordering) -> bool {
            match order {
                Ordering::SeqCst => self.0.fetch_or(false, order),
                _ => self.0.load(order),
            }
        }

        pub(crate) fn store(&self, value: bool, order: Ordering) {
            self.0.store(value, order);
        }

        pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
            self.0.swap(value, order)
        }
    }
}

#[cfg(all(test, timeout_shuttle))]
mod chosen {
    pub(crate) use super::model_env::{Condvar, now, thread};
    pub(crate) use shuttle::sync::Mutex;
    pub(crate) use shuttle::sync::atomic::AtomicU64 as AtomicNanos;
    pub(crate) use shuttle::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering,
    };
    pub(crate) use shuttle::{lazy_static, thread_local};

    pub(crate) const IS_MODEL: bool = true;
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
pub(crate) mod model_env;

mod atomic_u64;

pub(crate) use atomic_u64::AtomicU64;
pub(crate) use chosen::*;

/// Padded to a cache line to avoid false sharing.
#[repr(align(128))]
pub(crate) struct OwnLine<T>(pub(crate) T);

/// Declares a thread-local that is initialized at compile time.
///
/// If its type needs no drop, it is usable until the very end of its thread.
macro_rules! const_thread_local {
    ($(#[$attr:meta])* static $name:ident: $type:ty = $init:expr;) => {
        #[cfg(not(all(test, any(timeout_loom, timeout_shuttle))))]
        std::thread_local! {
            $(#[$attr])*
            static $name: $type = const { $init };
        }
        #[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
        crate::sync::thread_local! {
            $(#[$attr])*
            static $name: $type = $init;
        }
    };
}

/// Declares a static. In a model, it is created anew for each run.
macro_rules! one_per_process {
    ($(#[$attr:meta])* $(pub($level:ident))? static $name:ident: $type:ty = $init:expr;) => {
        #[cfg(not(all(test, any(timeout_loom, timeout_shuttle))))]
        $(#[$attr])*
        $(pub($level))? static $name: $type = $init;
        #[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
        crate::sync::lazy_static! {
            $(#[$attr])*
            $(pub($level))? static ref $name: $type = $init;
        }
    };
}

/// Declares a function that is `const`, except in a model: primitives of a model are created at run
/// time.
macro_rules! const_fn {
    ($(#[$attr:meta])* $vis:vis fn $name:ident() -> $type:ty $body:block) => {
        #[cfg(not(all(test, any(timeout_loom, timeout_shuttle))))]
        $(#[$attr])*
        $vis const fn $name() -> $type $body
        #[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
        $(#[$attr])*
        $vis fn $name() -> $type $body
    };
}

pub(crate) use {const_fn, const_thread_local, one_per_process};

use std::ops::DerefMut;
use std::sync::{Mutex as StdMutex, MutexGuard as StdGuard, PoisonError, TryLockError};

/// Takes a lock.
pub(crate) fn lock<L: Lock>(mutex: &L) -> L::Guard<'_> {
    mutex.hold()
}

/// Takes a lock if it is free.
pub(crate) fn try_lock<L: Lock>(mutex: &L) -> Option<L::Guard<'_>> {
    mutex.try_hold()
}

/// A mutex that ignores poisoning. No user code runs under our locks, so the guarded values are
/// consistent after a panic.
pub(crate) trait Lock {
    /// The guarded value.
    type Inside;
    /// Releases the lock when dropped.
    type Guard<'a>: DerefMut<Target = Self::Inside>
    where
        Self: 'a;

    /// Takes the lock.
    fn hold(&self) -> Self::Guard<'_>;

    /// Takes the lock if it is free.
    fn try_hold(&self) -> Option<Self::Guard<'_>>;

    /// Returns the guarded value without locking: `&mut self` proves that the lock is free.
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

    fn try_hold(&self) -> Option<Self::Guard<'_>> {
        match self.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn inside(&mut self) -> &mut T {
        self.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
impl<T> Lock for Mutex<T> {
    type Inside = T;
    #[cfg(timeout_loom)]
    type Guard<'a>
        = loom::sync::MutexGuard<'a, T>
    where
        T: 'a;
    #[cfg(timeout_shuttle)]
    type Guard<'a>
        = shuttle::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn hold(&self) -> Self::Guard<'_> {
        self.lock().unwrap()
    }

    fn try_hold(&self) -> Option<Self::Guard<'_>> {
        self.try_lock().ok()
    }

    fn inside(&mut self) -> &mut T {
        self.get_mut().unwrap()
    }
}
