//! The measured operations, without a limit.

use std::hint::{black_box, spin_loop};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

/// The type of operation that every peer runs.
pub(crate) type Operation = fn(u64) -> u64;

/// The limit of calls that end in time.
pub(crate) const FAR: Duration = Duration::from_secs(5);

/// The limit of calls that time out, and the duration of an operation that sleeps.
pub(crate) const NEAR: Duration = Duration::from_millis(1);

/// A limit of calls that end in time, as services set it.
pub(crate) const NEAR_LIMIT: Duration = Duration::from_millis(50);

/// Returns immediately.
pub(crate) fn add(x: u64) -> u64 {
    black_box(x) + 1
}

/// Keeps its thread busy for 100 µs.
pub(crate) fn work(x: u64) -> u64 {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_micros(100) {
        spin_loop();
    }
    x + 1
}

/// Blocks its thread for 1 ms.
pub(crate) fn sleep(x: u64) -> u64 {
    thread::sleep(NEAR);
    x + 1
}

/// Blocks its thread for 5 ms, and ignores a cancellation.
pub(crate) fn ignore(x: u64) -> u64 {
    thread::sleep(5 * NEAR);
    x + 1
}

/// Runs until it is cancelled.
pub(crate) fn obey(x: u64, is_cancelled: impl Fn() -> bool) -> u64 {
    while !is_cancelled() {
        thread::sleep(Duration::from_micros(100));
    }
    x + 1
}

/// A future that is pending so many times, and wakes its task each time.
#[derive(Debug)]
pub(crate) struct Pends(pub(crate) u32);

impl Future for Pends {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
