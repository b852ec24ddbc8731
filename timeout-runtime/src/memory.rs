//! Collections that release memory after removals: [`Shrink`] for `std` collections, and [`Table`],
//! a map in the order of insertion, whose keys are never used again.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};

/// A collection of at most this capacity never shrinks.
const SMALL: usize = 64;

/// A collection that releases memory after a peak.
pub(crate) trait Shrink {
    /// Called after a removal. Releases memory if less than a quarter of the capacity is in use.
    ///
    /// Keeps twice the used capacity, so that a removal takes amortized constant time.
    fn shrink(&mut self);
}

/// Returns the capacity to shrink to, or `None` if the current one is adequate.
#[inline]
fn fitting(len: usize, capacity: usize) -> Option<usize> {
    (capacity > SMALL && len < capacity / 4).then_some(2 * len)
}

macro_rules! shrink {
    ($([$($generics:tt)*] $collection:ty;)*) => {$(
        impl<$($generics)*> Shrink for $collection {
            #[inline]
            fn shrink(&mut self) {
                if let Some(capacity) = fitting(self.len(), self.capacity()) {
                    self.shrink_to(capacity);
                }
            }
        }
    )*};
}

shrink! {
    [T] Vec<T>;
    [T] VecDeque<T>;
    [K: Eq + Hash, V, S: BuildHasher] HashMap<K, V, S>;
}

/// Maps unique keys to values, in insertion order. A key is never reused.
///
/// In a slab a single remaining value can keep the memory of a peak. This table closes the gaps of
/// removed values once gaps are the majority. Before that, a key gives the position of its value;
/// afterwards, lookups use binary search.
pub(crate) struct Table<T> {
    last_key: u64,
    /// Sorted by key. `None` is a gap; the last place is never a gap.
    places: Vec<(u64, Option<T>)>,
    len: usize,
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self {
            last_key: 0,
            places: Vec::new(),
            len: 0,
        }
    }

    /// Adds a value and returns its key, which is greater than all earlier keys.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        self.last_key += 1;
        self.places.push((self.last_key, Some(value)));
        self.len += 1;
        self.last_key
    }

    /// Returns the position of `key`, which may be a gap.
    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        let (first, _) = self.places.first()?;
        let distance = usize::try_from(key.checked_sub(*first)?).ok()?;
        let latest = distance.min(self.places.len() - 1);
        if self.places[latest].0 == key {
            return Some(latest);
        }
        // Some gaps before it were closed.
        let before = &self.places[..latest];
        before.binary_search_by_key(&key, |(key, _)| *key).ok()
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let at = self.find(key)?;
        self.places[at].1.as_mut()
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        let at = self.find(key)?;
        let value = self.places[at].1.take()?;
        self.len -= 1;
        while matches!(self.places.last(), Some((_, None))) {
            self.places.pop();
        }
        if self.places.capacity() > SMALL {
            self.close_gaps();
        }
        Some(value)
    }

    /// Closes the gaps if they are the majority, and releases memory.
    #[inline(never)]
    fn close_gaps(&mut self) {
        if self.places.len() > 2 * self.len + SMALL {
            self.places.retain(|(_, value)| value.is_some());
        }
        self.places.shrink();
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|(_, value)| value.as_ref())
    }

    /// Removes and returns all values.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.len = 0;
        let places = std::mem::take(&mut self.places);
        places.into_iter().filter_map(|(_, value)| value)
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Guards against a value that is lost, or found under another key, after gaps are closed.
    #[test]
    fn a_table_finds_every_value_that_was_not_removed_in_insertion_order() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut table = Table::new();
        let mut expected = BTreeMap::new();
        for round in 0..20_000 {
            let grows = round % 4_000 < 2_000;
            if random.u8(..4) < if grows { 3 } else { 1 } {
                expected.insert(table.insert(round), round);
            } else {
                let key = match random.u8(..4) {
                    0 => expected.keys().next().copied(),
                    1 => expected.keys().next_back().copied(),
                    _ => Some(random.u64(..=table.last_key + 1)),
                };
                let key = key.unwrap_or(u64::MAX);
                assert_eq!(table.get_mut(key).copied(), expected.get(&key).copied());
                assert_eq!(table.remove(key), expected.remove(&key));
            }
            assert_eq!(table.len(), expected.len());
            assert!(table.places.len() <= 2 * table.len() + SMALL);
            assert!(table.places.capacity() <= 8 * (table.len() + SMALL));
        }
        assert!(table.values().eq(expected.values()));
        assert!(table.take_all().eq(expected.into_values()));
        assert_eq!((table.len(), table.values().count()), (0, 0));
    }
}
