//! Functions that must return in time, and functions that many threads run concurrently.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use super::support::SOON;

/// Runs `work` on a new thread and returns its value. Panics after [`SOON`].
#[track_caller]
pub fn must_return<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        let value = work();
        done.send(()).ok();
        value
    });
    assert_ne!(
        is_done.recv_timeout(SOON),
        Err(RecvTimeoutError::Timeout),
        "the function did not return"
    );
    thread
        .join()
        .unwrap_or_else(|payload| resume_unwind(payload))
}

/// Runs `work` once for each item, on as many concurrent threads.
pub fn at_once<T: Send, const N: usize>(items: [T; N], work: impl Fn(T) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for item in items {
            scope.spawn(move || work(item));
        }
    });
}

/// Runs `work` once for each number below `rounds`, spread over `threads` concurrent threads.
pub fn run_concurrently(threads: usize, rounds: usize, work: impl Fn(usize) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || (first..rounds).step_by(threads).for_each(work));
        }
    });
}
