//! [`Shards`]: one value per group of threads, so that threads rarely write to the same cache line.

use std::cell::Cell;

use crate::sync::{AtomicUsize, IS_MODEL, Ordering, const_thread_local, one_per_process};

/// The number of values. Up to this many threads have a value each.
pub(crate) const COUNT: usize = if IS_MODEL { 2 } else { 64 };

/// Values of the same kind. Each thread uses one of them.
pub(crate) struct Shards<T>(pub(crate) [Shard<T>; COUNT]);

/// Padded to a cache line to avoid false sharing.
#[repr(align(128))]
pub(crate) struct Shard<T>(pub(crate) T);

/// Creates `Shards` whose values are `$init` each.
#[cfg(not(all(test, any(timeout_loom, timeout_shuttle))))]
macro_rules! shards {
    ($init:expr) => {
        $crate::shards::Shards([const { $crate::shards::Shard($init) }; $crate::shards::COUNT])
    };
}

/// Creates `Shards` in a model, whose primitives are created at run time.
#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
macro_rules! shards {
    ($init:expr) => {
        $crate::shards::Shards(std::array::from_fn(|_| $crate::shards::Shard($init)))
    };
}

pub(crate) use shards;

one_per_process! {
    /// The number of threads that use shards.
    static THREADS: AtomicUsize = AtomicUsize::new(0);
}

const_thread_local! {
    /// The index of this thread's shard, once it has used one.
    static INDEX: Cell<Option<usize>> = Cell::new(None);
}

/// The index of this thread's shard. Threads take the shards in turns.
#[inline]
fn index() -> usize {
    INDEX.with(|index| {
        index.get().unwrap_or_else(|| {
            let next = THREADS.fetch_add(1, Ordering::Relaxed) % COUNT;
            index.set(Some(next));
            next
        })
    })
}

impl<T> Shards<T> {
    /// The value of this thread, which few other threads use, if any.
    #[inline]
    pub(crate) fn mine(&self) -> &T {
        &self.0[index()].0
    }

    /// The values of all threads.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|Shard(value)| value)
    }
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_always_uses_the_same_value() {
        let shards: Shards<AtomicUsize> = shards!(AtomicUsize::new(0));
        for _ in 0..3 {
            shards.mine().fetch_add(1, Ordering::Relaxed);
        }
        let used = shards
            .all()
            .filter(|value| value.load(Ordering::Relaxed) > 0);
        assert_eq!(
            used.map(|value| value.load(Ordering::Relaxed))
                .collect::<Vec<_>>(),
            [3]
        );
    }

    #[test]
    fn as_many_threads_as_values_use_different_values() {
        let shards: Shards<AtomicUsize> = shards!(AtomicUsize::new(0));
        // Other tests take numbers at the same time, so this counts the values, not their users.
        thread::scope(|scope| {
            for _ in 0..4 * COUNT {
                scope.spawn(|| shards.mine().fetch_add(1, Ordering::Relaxed));
            }
        });
        let used = shards
            .all()
            .filter(|value| value.load(Ordering::Relaxed) > 0);
        assert!(used.count() > COUNT / 2);
    }
}
