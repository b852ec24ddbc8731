//! [`Shards`]: one value per group of threads, so that threads rarely write to the same cache line.

use std::cell::Cell;

use crate::sync::{AtomicUsize, IS_MODEL, Ordering, OwnLine, const_thread_local, one_per_process};

/// The number of values where many threads are expected. Up to this many threads have one each.
pub(crate) const MANY: usize = if IS_MODEL { 2 } else { 64 };

/// Values of the same kind. Each thread uses one of them.
pub(crate) struct Shards<T, const COUNT: usize = MANY>(pub(crate) [OwnLine<T>; COUNT]);

/// Creates `Shards` whose values are `$init` each.
#[cfg(not(all(test, any(timeout_loom, timeout_shuttle))))]
macro_rules! shards {
    ($init:expr; $count:expr) => {
        $crate::shards::Shards([const { $crate::sync::OwnLine($init) }; $count])
    };
}

/// Creates `Shards` in a model, whose primitives are created at run time.
#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
macro_rules! shards {
    ($init:expr; $count:expr) => {
        $crate::shards::Shards::<_, { $count }>(std::array::from_fn(|_| {
            $crate::sync::OwnLine($init)
        }))
    };
}

pub(crate) use shards;

one_per_process! {
    /// The number of threads that use shards.
    static THREADS: AtomicUsize = AtomicUsize::new(0);
}

const_thread_local! {
    /// The number of this thread, once it has used shards.
    static NUMBER: Cell<Option<usize>> = Cell::new(None);
}

/// The number of this thread. Threads are numbered in the order of their first use of shards.
#[inline]
fn number() -> usize {
    NUMBER.with(|number| {
        number.get().unwrap_or_else(|| {
            let next = THREADS.fetch_add(1, Ordering::Relaxed);
            number.set(Some(next));
            next
        })
    })
}

impl<T, const COUNT: usize> Shards<T, COUNT> {
    /// The value of this thread, which few other threads use, if any.
    #[inline]
    pub(crate) fn mine(&self) -> &T {
        self.own().1
    }

    /// As `mine`, with its index. Threads take the values in turns.
    #[inline]
    pub(crate) fn own(&self) -> (usize, &T) {
        let index = number() % COUNT;
        (index, self.at(index))
    }

    /// The value at `index`.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> &T {
        &self.0[index].0
    }

    /// The values of all threads.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|OwnLine(value)| value)
    }
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_always_uses_the_same_value() {
        let shards: Shards<AtomicUsize> = shards!(AtomicUsize::new(0); MANY);
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
        let shards: Shards<AtomicUsize> = shards!(AtomicUsize::new(0); MANY);
        // Other tests take numbers at the same time, so this counts the values, not their users.
        thread::scope(|scope| {
            for _ in 0..4 * MANY {
                scope.spawn(|| shards.mine().fetch_add(1, Ordering::Relaxed));
            }
        });
        let used = shards
            .all()
            .filter(|value| value.load(Ordering::Relaxed) > 0);
        assert!(used.count() > MANY / 2);
    }
}
