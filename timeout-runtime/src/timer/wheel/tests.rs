//! The wheel beside a sorted list, with random times.

use super::*;
use fastrand::Rng;
use std::collections::{BTreeMap, HashMap};

/// The time of a value, and its number in the order of insertion.
type Value = (Tick, u64);

/// A wheel, and the same values in a sorted list.
struct Compared {
    wheel: Wheel<Value>,
    list: BTreeMap<Value, EntryKey>,
    inserted: u64,
    /// A time bound stays exact until a value is removed.
    is_exact: bool,
}

impl Compared {
    fn new() -> Self {
        Self {
            wheel: Wheel::new(),
            list: BTreeMap::new(),
            inserted: 0,
            is_exact: true,
        }
    }

    fn insert(&mut self, at: Tick) -> EntryKey {
        let value = (at, self.inserted);
        let key = self.wheel.insert(at, value);
        self.list.insert(value, key);
        self.inserted += 1;
        key
    }

    /// Removes the first value from `at` on. Returns its key.
    fn remove_from(&mut self, at: Tick) -> Option<EntryKey> {
        let (&value, &key) = self.list.range((at, 0)..).next()?;
        self.list.remove(&value);
        self.is_exact = false;
        assert_eq!(self.wheel.get_mut(key), Some(&mut { value }));
        assert_eq!(self.wheel.remove(key), Some(value));
        Some(key)
    }

    /// Takes all due values, `most` at a time. Returns how many.
    fn take_due(&mut self, now: Tick, most: usize) -> usize {
        let before = self.list.len();
        let mut due = VecDeque::new();
        let mut last_of_time = HashMap::new();
        loop {
            let next = self.wheel.take_due(now, most, &mut due);
            assert!(due.len() <= most);
            for (at, number) in due.drain(..) {
                assert!(at <= now, "early by {:?}", at.since(now));
                assert!(self.list.remove(&(at, number)).is_some(), "taken twice");
                let last = last_of_time.insert(at, number);
                assert!(last < Some(number), "equal times in another order");
            }
            let first = self.list.keys().next().map_or(Tick::NEVER, |value| value.0);
            assert!(next <= first, "late by {:?}", next.since(first));
            if next > now {
                assert!(next == first || !self.is_exact);
                break;
            }
        }
        assert_eq!(self.wheel.len(), self.list.len());
        before - self.list.len()
    }
}

/// A duration of any magnitude: from a nanosecond to centuries.
fn any_nanos(random: &mut Rng) -> u64 {
    random.u64(..) >> random.u32(1..64)
}

fn any_time(random: &mut Rng, now: Tick) -> Tick {
    match random.u8(..20) {
        0 => Tick::of_nanos(now.nanos().saturating_sub(any_nanos(random))),
        1 => Tick::NEVER,
        2 => Tick::PAST,
        // Equal times.
        3..8 => now.plus_nanos(1_000_000 * random.u64(1..4)),
        _ => now.plus_nanos(any_nanos(random)),
    }
}

/// Inserts, removes and takes values at random.
fn compare(random: &mut Rng, removes: bool) {
    let mut compared = Compared::new();
    let mut now = if random.bool() {
        Tick::now()
    } else {
        Tick::PAST
    };
    compared.wheel.current = slot_number(now).max(1);
    let mut stale = Vec::new();
    for _ in 0..2000 {
        match random.u8(..10) {
            0..6 => {
                compared.insert(any_time(random, now));
            }
            6..9 if removes => stale.extend(compared.remove_from(any_time(random, now))),
            _ => {
                // Often to the very time of a value, and sometimes back.
                now = match random.u8(..8) {
                    0 => Tick::of_nanos(now.nanos().saturating_sub(any_nanos(random) >> 20)),
                    1..5 => compared.list.keys().next().map_or(now, |value| value.0),
                    _ => now.plus_nanos(any_nanos(random) >> random.u32(..40)),
                };
                if now.is_never() {
                    now = Tick::now();
                }
                compared.take_due(now, random.usize(1..40));
            }
        }
    }
    for key in stale {
        assert_eq!(compared.wheel.remove(key), None);
    }
    // `NEVER` comes for values too.
    let left = compared.list.len();
    let beyond = Tick::of_nanos(u64::MAX - 1);
    let taken = compared.take_due(beyond, 100);
    assert!(compared.list.keys().all(|value| value.0.is_never()));
    assert_eq!(taken + compared.list.len(), left);
}

#[test]
fn values_come_once_at_their_times_and_equal_times_in_the_order_of_insertion() {
    let mut random = Rng::with_seed(7);
    for _ in 0..100 {
        compare(&mut random, true);
    }
}

#[test]
fn without_removals_the_next_time_is_exact() {
    let mut random = Rng::with_seed(8);
    for _ in 0..50 {
        compare(&mut random, false);
    }
}

#[test]
fn a_million_values_come_once_at_their_times() {
    const MANY: usize = 1_000_000;

    let mut random = Rng::with_seed(9);
    let mut wheel = Wheel::new();
    let start = Tick::now();
    let mut keys: Vec<_> = (0..MANY)
        .map(|number| {
            let at = start.plus_nanos(any_nanos(&mut random) >> 20);
            Some(wheel.insert(at, (at, number)))
        })
        .collect();
    for number in 0..MANY / 2 {
        let key = keys[2 * number].take().unwrap();
        assert!(wheel.remove(key).is_some());
    }
    let (mut due, mut away) = (VecDeque::new(), 1);
    while wheel.len() > 0 {
        let now = start.plus_nanos(away);
        while wheel.take_due(now, 256, &mut due) <= now {}
        for (at, number) in due.drain(..) {
            assert!((start.plus_nanos(away / 2)..=now).contains(&at));
            assert!(keys[number].take().is_some(), "taken twice");
        }
        away *= 2;
    }
    assert!(keys.iter().all(Option::is_none));
}

/// Values that are left by a batch must not be moved again by the next one.
#[test]
fn a_slot_is_distributed_once_for_all_batches() {
    let at = Tick::now().plus_nanos(1_000_000_000);
    let mut wheel = Wheel::new();
    for number in 0..10_000 {
        wheel.insert(at, number);
    }
    let mut due = VecDeque::new();
    assert!(wheel.take_due(at, 10, &mut due) <= at);
    assert!(due.iter().copied().eq(0..10));
    let levels = wheel.levels.iter();
    let occupied: Vec<_> = levels.map(|level| level.occupied.count_ones()).collect();
    assert_eq!(occupied[0], 1);
    assert!(occupied[1..].iter().all(|slots| *slots == 0));
}
