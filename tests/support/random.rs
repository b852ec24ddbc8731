//! Pseudo-random numbers. Each seed gives the same numbers.

#![allow(dead_code, unreachable_pub)] // Each program uses its part.

use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;

pub struct Random(Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// One of many sequences with the same seed.
    pub fn sequence(seed: u64, number: u64) -> Self {
        let seed = Rng::with_seed(seed).u64(..);
        Self(Rng::with_seed(seed ^ number))
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    /// Returns `true` once in `many` times.
    pub fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.usize(..from.len())]
    }

    pub fn micros(&mut self, range: Range<u64>) -> Duration {
        Duration::from_micros(self.0.u64(range))
    }
}
