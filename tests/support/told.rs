//! Those who are to hear of a signal, and what they have heard.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use proptest::sample::Index;

/// Counts what it is told.
#[derive(Default)]
pub struct Count(AtomicUsize);

impl Count {
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Somebody who is to be told once `node` fires, and how often that has been so.
pub struct Told<T> {
    pub node: usize,
    pub count: Arc<Count>,
    pub expected: usize,
    /// `None` once it is not there any more.
    pub place: Option<T>,
}

/// All who are there and wait for one of `fired` are to hear of it.
pub fn tell<T>(those: &mut [Told<T>], fired: &[usize]) {
    for told in those {
        let hears = told.place.is_some() && fired.contains(&told.node);
        told.expected += usize::from(hears);
    }
}

/// Asserts that each has heard as often as he was to.
#[track_caller]
pub fn compare<T>(what: &str, those: &[Told<T>]) {
    for told in those {
        let count = told.count.get();
        assert_eq!(count, told.expected, "{what} of token {}", told.node);
    }
}

/// The place of one that is there.
pub fn pick_place<T>(those: &[Told<T>], index: Index) -> Option<usize> {
    let there = those
        .iter()
        .enumerate()
        .filter(|(_, told)| told.place.is_some());
    let places: Vec<usize> = there.map(|(place, _)| place).collect();
    (!places.is_empty()).then(|| *index.get(&places))
}
