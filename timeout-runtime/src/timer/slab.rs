//! [`Slab`]: values at places that do not move, in chunks that are freed one by one.
//!
//! A value that stays after a peak keeps its own chunk and no other. A new chunk moves no values,
//! so no insertion takes long.

use crate::memory::Shrink;

/// The number of places in a chunk.
const CHUNK: u32 = u16::BITS;

pub(super) struct Slab<T> {
    /// `None` is a chunk that was freed.
    chunks: Vec<Option<Box<Chunk<T>>>>,
    /// The chunks that were freed or have a free place.
    roomy: Vec<u32>,
    /// The last chunk that became empty. It is kept until another one does, so that a value that
    /// comes and goes allocates nothing.
    emptied: u32,
    len: usize,
}

struct Chunk<T> {
    /// A bit for each free place.
    free: u16,
    places: [Option<T>; CHUNK as usize],
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            roomy: Vec::new(),
            emptied: 0,
            len: 0,
        }
    }

    #[cfg(all(test, not(timeout_loom)))]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a value and returns its place, which is less than `u32::MAX`.
    #[inline]
    pub(super) fn insert(&mut self, value: T) -> u32 {
        let number = match self.roomy.last() {
            Some(number) => *number,
            None => self.grow(),
        };
        let chunk = self.chunks[number as usize].get_or_insert_with(|| Box::new(Chunk::EMPTY));
        let place = chunk.free.trailing_zeros();
        chunk.places[place as usize] = Some(value);
        chunk.free &= chunk.free - 1;
        if chunk.free == 0 {
            self.roomy.pop();
        }
        self.len += 1;
        number * CHUNK + place
    }

    /// Adds a chunk.
    #[cold]
    fn grow(&mut self) -> u32 {
        let number = u32::try_from(self.chunks.len()).unwrap_or(u32::MAX);
        assert!(number < u32::MAX / CHUNK, "too many values");
        self.chunks.push(None);
        self.roomy.push(number);
        number
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        let chunk = self.chunks.get_mut((place / CHUNK) as usize)?.as_mut()?;
        chunk.places[(place % CHUNK) as usize].as_mut()
    }

    #[inline]
    pub(super) fn remove(&mut self, place: u32) -> Option<T> {
        let number = place / CHUNK;
        let chunk = self.chunks.get_mut(number as usize)?.as_mut()?;
        let value = chunk.places[(place % CHUNK) as usize].take()?;
        if chunk.free == 0 {
            self.roomy.push(number);
        }
        chunk.free |= 1 << (place % CHUNK);
        self.len -= 1;
        if chunk.free == u16::MAX && self.emptied != number {
            self.release(number);
        }
        Some(value)
    }

    /// Frees the chunk that became empty before chunk `number` did.
    #[cold]
    fn release(&mut self, number: u32) {
        let before = std::mem::replace(&mut self.emptied, number);
        if let Some(chunk) = self.chunks.get_mut(before as usize) {
            chunk.take_if(|chunk| chunk.free == u16::MAX);
        }
        if self.len == 0 {
            self.chunks.clear();
            self.chunks.shrink();
            self.roomy.clear();
            self.roomy.shrink();
        }
    }
}

impl<T> Chunk<T> {
    const EMPTY: Self = Self {
        free: u16::MAX,
        places: [const { None }; CHUNK as usize],
    };
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Guards against a value that is lost, or found at another place, and against memory that is
    /// kept for few values.
    #[test]
    fn a_slab_finds_every_value_and_keeps_the_chunks_of_values_only() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut slab = Slab::new();
        let mut expected = BTreeMap::new();
        for round in 0..40_000 {
            let grows = round % 8_000 < 4_000;
            if random.u8(..4) < if grows { 3 } else { 1 } {
                let place = slab.insert(round);
                assert_eq!(expected.insert(place, round), None);
            } else {
                let place = random.u32(..5_000);
                let place = expected.range(place..).next().map_or(place, |at| *at.0);
                assert_eq!(slab.get_mut(place).copied(), expected.get(&place).copied());
                assert_eq!(slab.remove(place), expected.remove(&place));
            }
            assert_eq!(slab.len(), expected.len());
        }
        while expected.len() > 3 {
            let place = random.u32(..4_000);
            if let Some((&place, &value)) = expected.range(place..).next() {
                assert_eq!(slab.remove(place), Some(value));
                expected.remove(&place);
            }
        }
        assert!(slab.chunks.iter().flatten().count() <= 3 + 1);
        for (place, value) in expected {
            assert_eq!(slab.remove(place), Some(value));
        }
        assert!(slab.chunks.is_empty() && slab.chunks.capacity() <= 64);
        assert!(slab.roomy.is_empty() && slab.roomy.capacity() <= 64);
    }
}
