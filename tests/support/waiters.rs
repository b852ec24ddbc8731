//! Waiters for the cancellation of model tokens, and how often each of them was woken.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use proptest::sample::Index;

/// Counts calls of [`add`](Self::add), or the wake-ups of a waker.
#[derive(Default)]
pub struct Count(AtomicUsize);

impl Count {
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.add();
    }
}

/// A callback, wait or call that is woken when the token of `node` is cancelled, and its wake-ups.
pub struct Waiter<T> {
    pub node: usize,
    pub count: Arc<Count>,
    pub expected: usize,
    /// `None` after it was removed.
    pub place: Option<T>,
}

/// Expects one more wake-up of each registered waiter of the `cancelled` nodes.
pub fn expect_woken<T>(waiters: &mut [Waiter<T>], cancelled: &[usize]) {
    for waiter in waiters {
        let is_woken = waiter.place.is_some() && cancelled.contains(&waiter.node);
        waiter.expected += usize::from(is_woken);
    }
}

/// Asserts that each waiter was woken as often as expected.
#[track_caller]
pub fn compare<T>(what: &str, waiters: &[Waiter<T>]) {
    for waiter in waiters {
        let count = waiter.count.get();
        assert_eq!(count, waiter.expected, "{what} of token {}", waiter.node);
    }
}

/// The index of a waiter that is still registered.
pub fn pick_place<T>(waiters: &[Waiter<T>], index: Index) -> Option<usize> {
    let there = waiters
        .iter()
        .enumerate()
        .filter(|(_, waiter)| waiter.place.is_some());
    let places: Vec<usize> = there.map(|(place, _)| place).collect();
    (!places.is_empty()).then(|| *index.get(&places))
}
