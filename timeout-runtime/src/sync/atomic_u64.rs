//! [`AtomicU64`], also for targets without 64-bit atomics, such as 32-bit PowerPC and MIPS.

#[cfg(target_has_atomic = "64")]
pub(crate) use std::sync::atomic::AtomicU64;

#[cfg(not(target_has_atomic = "64"))]
pub(crate) use locked::AtomicU64;

#[cfg(any(
    not(target_has_atomic = "64"),
    all(test, not(any(timeout_loom, timeout_shuttle)))
))]
mod locked {
    use std::sync::Mutex;
    use std::sync::atomic::Ordering;

    use crate::sync::lock;

    /// A number behind a lock, which orders at least as strongly as any `Ordering`.
    #[derive(Debug)]
    pub(crate) struct AtomicU64(Mutex<u64>);

    impl AtomicU64 {
        pub(crate) const fn new(value: u64) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn load(&self, _: Ordering) -> u64 {
            *lock(&self.0)
        }

        pub(crate) fn store(&self, value: u64, _: Ordering) {
            *lock(&self.0) = value;
        }

        pub(crate) fn fetch_add(&self, value: u64, _: Ordering) -> u64 {
            let mut held = lock(&self.0);
            let before = *held;
            *held = before.wrapping_add(value);
            before
        }

        pub(crate) fn fetch_min(&self, value: u64, _: Ordering) -> u64 {
            let mut held = lock(&self.0);
            let before = *held;
            *held = before.min(value);
            before
        }
    }
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;

    use super::locked::AtomicU64;

    /// Targets without 64-bit atomics did not build.
    #[test]
    fn a_locked_number_behaves_like_an_atomic_number() {
        let number = AtomicU64::new(u64::MAX);
        assert_eq!(number.fetch_add(1, Ordering::Relaxed), u64::MAX);
        assert_eq!(number.load(Ordering::Relaxed), 0);
        number.store(1, Ordering::Relaxed);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        number.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(number.load(Ordering::Relaxed), 4001);
        assert_eq!(number.fetch_min(5000, Ordering::Relaxed), 4001);
        assert_eq!(number.fetch_min(7, Ordering::Relaxed), 4001);
        assert_eq!(number.load(Ordering::Relaxed), 7);
    }
}
