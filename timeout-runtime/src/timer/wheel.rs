//! [`Wheel`]: values with times. Inserting or removing one takes constant time.
//!
//! ```text
//!   level 0    32 slots of 65 µs      all slots of a level cover one slot of the next level
//!   level 1    32 slots of 2 ms
//!   ...
//!   level 9    32 slots of 73 years
//! ```
//!
//! 1. No value is before the current slot of level 0. A value is on the level of the highest digit,
//!    in base 32, in which the number of its slot of level 0 differs from that of the current slot.
//!    So each value of a level is earlier than all values of higher levels.
//! 2. A slot is a list in the order of insertion. When its first value is due and all lower levels
//!    are empty, its values are distributed over them. So values with equal times keep their order.
//! 3. Values keep their exact times, and none is taken before its time.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use crate::time::Tick;

use super::slab::Slab;

/// A slot of level 0 covers `1 << SLOT_BITS` nanoseconds.
const SLOT_BITS: u32 = 16;

/// A level has `1 << LEVEL_BITS` slots.
const LEVEL_BITS: u32 = 5;

const SLOTS: usize = 1 << LEVEL_BITS;

/// Not the index of an entry.
const NONE: u32 = u32::MAX;

pub(super) struct Wheel<T> {
    entries: Slab<Entry<T>>,
    /// The levels in use so far.
    levels: Vec<Level>,
    /// The number of the current slot of level 0; zero before the first value.
    current: u64,
    next_serial: NonZeroU32,
}

struct Entry<T> {
    at: Tick,
    /// The entries before and after it in its slot.
    before: u32,
    after: u32,
    serial: NonZeroU32,
    value: T,
}

struct Level {
    /// A bit for each slot that is not empty.
    occupied: u32,
    slots: [Slot; SLOTS],
}

#[derive(Clone, Copy)]
struct Slot {
    first: u32,
    last: u32,
    /// No entry is earlier. The entry that was the earliest may have been removed.
    earliest: Tick,
}

/// Identifies a value of a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryKey {
    pub(super) index: u32,
    /// Tells the entry from the four billion before it.
    pub(super) serial: NonZeroU32,
}

impl<T> Wheel<T> {
    pub(super) const fn new() -> Self {
        Self {
            entries: Slab::new(),
            levels: Vec::new(),
            current: 0,
            next_serial: NonZeroU32::MIN,
        }
    }

    #[cfg(all(test, not(timeout_loom)))]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn insert(&mut self, at: Tick, value: T) -> EntryKey {
        let serial = self.next_serial;
        self.next_serial = serial.checked_add(1).unwrap_or(NonZeroU32::MIN);
        if self.current == 0 {
            // Relative to the start of all times, each value would be on the highest level.
            self.current = slot_number(Tick::now());
        }
        let (level, number) = self.slot_at(at);
        if level >= self.levels.len() {
            self.levels.resize_with(level + 1, || Level::EMPTY);
        }
        let index = self.entries.insert(Entry {
            at,
            before: self.levels[level].slots[number].last,
            after: NONE,
            serial,
            value,
        });
        self.append(level, number, index, at);
        EntryKey { index, serial }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: EntryKey) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.index)?;
        (entry.serial == key.serial).then_some(&mut entry.value)
    }

    #[inline]
    pub(super) fn remove(&mut self, key: EntryKey) -> Option<T> {
        self.get_mut(key)?;
        self.take(key.index)
    }

    /// Moves at most `most` values whose time is not after `now` to `due`. Returns a time before
    /// which no other value is due; it is exact unless values were removed. It is not after `now`
    /// if more values are due.
    pub(super) fn take_due(&mut self, now: Tick, most: usize, due: &mut VecDeque<T>) -> Tick {
        let full = due.len() + most;
        while let Some((level, number)) = self.first_slot() {
            let slot = self.levels[level].slots[number];
            if slot.earliest > now || due.len() == full {
                return slot.earliest;
            }
            if level == 0 {
                self.take_from(number, now, full, due);
            } else {
                self.distribute(level, number);
            }
        }
        // Nothing is placed. New values are placed relative to the present.
        self.current = self.current.max(slot_number(now));
        Tick::NEVER
    }

    /// The level and the number of the first slot that is not empty.
    fn first_slot(&self) -> Option<(usize, usize)> {
        let level = self.levels.iter().position(|level| level.occupied != 0)?;
        Some((level, self.levels[level].occupied.trailing_zeros() as usize))
    }

    /// Takes the due values of a slot of level 0, until `due` has `full` values.
    fn take_from(&mut self, number: usize, now: Tick, full: usize, due: &mut VecDeque<T>) {
        let mut earliest = Tick::NEVER;
        let mut next = self.levels[0].slots[number].first;
        while let Some(entry) = self.entries.get_mut(next) {
            let (index, at) = (next, entry.at);
            next = entry.after;
            if at > now {
                earliest = earliest.min(at);
            } else if due.len() < full {
                due.extend(self.take(index));
            } else {
                return;
            }
        }
        self.levels[0].slots[number].earliest = earliest;
    }

    /// Distributes the values of the first slot over lower levels.
    fn distribute(&mut self, level: usize, number: usize) {
        let level = &mut self.levels[level];
        level.occupied &= !(1 << number);
        let slot = std::mem::replace(&mut level.slots[number], Slot::EMPTY);
        self.current = slot_number(slot.earliest);
        let mut next = slot.first;
        while let Some(entry) = self.entries.get_mut(next) {
            let (index, at) = (next, entry.at);
            next = entry.after;
            let (level, number) = self.slot_at(at);
            let last = self.levels[level].slots[number].last;
            if let Some(entry) = self.entries.get_mut(index) {
                (entry.before, entry.after) = (last, NONE);
            }
            self.append(level, number, index, at);
        }
    }

    /// The level and the number of the slot for a time.
    #[inline]
    fn slot_at(&self, at: Tick) -> (usize, usize) {
        let number = slot_number(at).max(self.current);
        let highest_bit = ((number ^ self.current) | 1).ilog2();
        let level = highest_bit / LEVEL_BITS;
        let digit = (number >> (level * LEVEL_BITS)) % (1 << LEVEL_BITS);
        (level as usize, digit as usize)
    }

    /// Adds an entry at the end of a slot. The entry knows the one before it.
    fn append(&mut self, level: usize, number: usize, index: u32, at: Tick) {
        let level = &mut self.levels[level];
        let slot = &mut level.slots[number];
        let before = std::mem::replace(&mut slot.last, index);
        if before == NONE {
            slot.first = index;
            slot.earliest = at;
            level.occupied |= 1 << number;
            return;
        }
        slot.earliest = slot.earliest.min(at);
        if let Some(before) = self.entries.get_mut(before) {
            before.after = index;
        }
    }

    /// Removes an entry from its slot, and returns its value.
    fn take(&mut self, index: u32) -> Option<T> {
        let entry = self.entries.remove(index)?;
        let (level, number) = self.slot_at(entry.at);
        let level = &mut self.levels[level];
        let slot = &mut level.slots[number];
        if entry.before == NONE {
            slot.first = entry.after;
        } else if let Some(before) = self.entries.get_mut(entry.before) {
            before.after = entry.after;
        }
        if entry.after == NONE {
            slot.last = entry.before;
        } else if let Some(after) = self.entries.get_mut(entry.after) {
            after.before = entry.before;
        }
        if slot.first == NONE {
            level.occupied &= !(1 << number);
        }
        Some(entry.value)
    }
}

impl Level {
    const EMPTY: Self = Self {
        occupied: 0,
        slots: [Slot::EMPTY; SLOTS],
    };
}

impl Slot {
    const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
        earliest: Tick::NEVER,
    };
}

/// The number of the slot of level 0 for a time.
fn slot_number(at: Tick) -> u64 {
    at.nanos() >> SLOT_BITS
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests;
