//! [`Queue`]: alarms in the order of their times.
//!
//! Most limits are a few constants, and alarms with the same limit are armed in the order in which
//! they fire. So an alarm is appended to the run whose last alarm is the latest one before it. Soon
//! each limit has a run of its own: arming is a push, and the first alarm of all is at the front of
//! a run. An alarm that fits no run goes to a heap. Disarming leaves a dead entry behind. Dead
//! entries are removed at the ends of the runs, and everywhere once they are the majority.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::memory::Shrink;
use crate::time::Tick;

/// Identifies an armed alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub(super) u64);

/// The time of an alarm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) at: Tick,
    pub(super) key: Key,
}

/// How many limits have a run of their own.
const RUNS: usize = 8;

/// So few dead entries are not worth a clean-up.
pub(super) const FEW: usize = 64;

pub(super) struct Queue {
    runs: [VecDeque<Entry>; RUNS],
    /// How many runs may be in use. All others are empty.
    used: usize,
    rest: BinaryHeap<Reverse<Entry>>,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            runs: [const { VecDeque::new() }; RUNS],
            used: 0,
            rest: BinaryHeap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        let runs = &self.runs[..self.used];
        runs.iter().map(VecDeque::len).sum::<usize>() + self.rest.len()
    }

    pub(super) fn push(&mut self, entry: Entry) {
        let in_order = |run: &&mut VecDeque<Entry>| run.back().is_none_or(|last| *last <= entry);
        let runs = self.runs[..self.used].iter_mut().filter(in_order);
        if let Some(run) = runs.max_by_key(|run| run.back().copied()) {
            run.push_back(entry);
        } else if let Some(run) = self.runs.get_mut(self.used) {
            run.push_back(entry);
            self.used += 1;
        } else {
            self.rest.push(Reverse(entry));
        }
    }

    /// The first alarm. Removes dead entries before it.
    pub(super) fn first(&mut self, is_live: impl Fn(Key) -> bool) -> Option<Entry> {
        for run in &mut self.runs[..self.used] {
            while run.front().is_some_and(|first| !is_live(first.key)) {
                run.pop_front();
                run.shrink();
            }
        }
        while self
            .rest
            .peek()
            .is_some_and(|Reverse(first)| !is_live(first.key))
        {
            self.rest.pop();
            self.rest.shrink();
        }
        self.fronts().min()
    }

    /// Removes the first alarm, which `first` has returned.
    pub(super) fn pop(&mut self, first: Entry) {
        let mut runs = self.runs[..self.used].iter_mut();
        if let Some(run) = runs.find(|run| run.front() == Some(&first)) {
            run.pop_front();
            run.shrink();
        } else {
            self.rest.pop();
            self.rest.shrink();
        }
    }

    fn fronts(&self) -> impl Iterator<Item = Entry> {
        let rest = self.rest.peek().map(|Reverse(first)| *first);
        let runs = self.runs[..self.used].iter();
        runs.filter_map(|run| run.front().copied()).chain(rest)
    }

    /// Removes an alarm if it is the last one of the run used most recently. Returns `false` if it
    /// leaves a dead entry behind.
    pub(super) fn unpush(&mut self, key: Key) -> bool {
        let Some(run) = self.runs[..self.used].last_mut() else {
            return false;
        };
        let is_last = run.back().is_some_and(|last| last.key == key);
        if is_last {
            run.pop_back();
            run.shrink();
            if run.is_empty() {
                self.used -= 1;
            }
        }
        is_last
    }

    /// Cleans up after an alarm was disarmed. `live` alarms are left.
    pub(super) fn tidy(&mut self, live: usize, is_live: impl Fn(Key) -> bool) {
        for run in &mut self.runs[..self.used] {
            while run.back().is_some_and(|last| !is_live(last.key)) {
                run.pop_back();
                run.shrink();
            }
        }
        while self.used > 0 && self.runs[self.used - 1].is_empty() {
            self.used -= 1;
        }
        if self.len() > 2 * live + FEW {
            for run in &mut self.runs {
                run.retain(|entry| is_live(entry.key));
                run.shrink();
            }
            self.rest.retain(|Reverse(entry)| is_live(entry.key));
            self.rest.shrink();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// Alarms of any limits come in the order of their times, also after others were disarmed.
    #[test]
    fn alarms_come_in_the_order_of_their_times() {
        let start = Tick::now();
        let mut queue = Queue::new();
        let mut live = BTreeSet::new();
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        for serial in 0..4000 {
            let lengths = if serial < 2000 { 3 } else { 5000 };
            let length = Duration::from_micros(next(lengths) * 1000);
            let at = start.plus(Duration::from_micros(serial) + length);
            let key = Key(serial);
            queue.push(Entry { at, key });
            live.insert((at, serial));
            let taken_back = match next(3) {
                0 => live.pop_last(),
                1 => live.iter().nth(live.len() / 2).copied(),
                _ => None,
            };
            if let Some(entry) = taken_back {
                live.remove(&entry);
                if serial % 50 == 0 {
                    let serials: BTreeSet<_> = live.iter().map(|entry| entry.1).collect();
                    queue.tidy(live.len(), |key| serials.contains(&key.0));
                }
            }
        }
        let serials: BTreeSet<_> = live.iter().map(|entry| entry.1).collect();
        queue.tidy(live.len(), |key| serials.contains(&key.0));
        assert!(queue.len() <= 2 * live.len() + FEW);
        for (at, serial) in live {
            let first = queue.first(|key| serials.contains(&key.0)).unwrap();
            assert_eq!((first.at, first.key.0), (at, serial));
            queue.pop(first);
        }
        assert!(queue.first(|key| serials.contains(&key.0)).is_none());
    }
}
