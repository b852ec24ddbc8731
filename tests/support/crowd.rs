//! Work that must come to an end, and work that many threads do at once.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use super::support::SOON;

/// Runs `work` on a thread of its own and gives what it gives; panics if that takes too long.
#[track_caller]
pub fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        let value = work();
        done.send(()).ok();
        value
    });
    assert_ne!(
        is_done.recv_timeout(SOON),
        Err(RecvTimeoutError::Timeout),
        "it never ended"
    );
    thread
        .join()
        .unwrap_or_else(|payload| resume_unwind(payload))
}

/// Has `threads` threads at once do each `work(0)`, `work(threads)`, and so on, so that together they do every one of `0..rounds`.
pub fn crowd(threads: usize, rounds: usize, work: impl Fn(usize) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || (first..rounds).step_by(threads).for_each(work));
        }
    });
}
