//! What the calls do, without any limit.

use std::hint::{black_box, spin_loop};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

/// As every way of calling takes it.
pub(crate) type Operation = fn(u64) -> u64;

/// The limit of calls that are to end in time.
pub(crate) const FAR: Duration = Duration::from_secs(5);

/// The limit of calls that are to end late, and how long an operation sleeps.
pub(crate) const NEAR: Duration = Duration::from_millis(1);

/// Over at once.
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

/// Looks at nothing for 5 ms.
pub(crate) fn ignore(x: u64) -> u64 {
    thread::sleep(5 * NEAR);
    x + 1
}

/// Goes on until it is told to stop.
pub(crate) fn obey(x: u64, told: impl Fn() -> bool) -> u64 {
    while !told() {
        thread::sleep(Duration::from_micros(100));
    }
    x + 1
}

/// Pending so many times, and wakes its task each time.
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
