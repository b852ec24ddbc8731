//! Measures how late after its limit a caller gets its error: rows S14 and A8.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::annotated;
use crate::async_calls::current_thread;
use crate::finding::Finding;
use crate::group::Group;
use crate::measured::{Figure, Measured, nanoseconds};
use crate::meter::Meter;
use crate::offload::TOKIO;
use crate::operations::{self, NEAR};
use crate::options::Options;

const ROUNDS: usize = 15;
const SAMPLES: u32 = 16;

/// Measures the lateness of `call`, which returns whether it timed out.
///
/// On a stalled machine, an operation can return in time. Such a call is not a sample.
fn late(gap: Duration, mut call: impl FnMut() -> bool) -> Measured {
    let mut samples = Vec::with_capacity(SAMPLES as usize);
    let meter = Meter::start();
    let all = Instant::now();
    for _ in 0..SAMPLES {
        let begun = Instant::now();
        let late = call();
        let took = begun.elapsed();
        if late {
            samples.push(nanoseconds(took.saturating_sub(NEAR)));
        }
        thread::sleep(gap);
    }
    let wall = all.elapsed();
    let cost = meter.stop();
    Measured::new(samples, u64::from(SAMPLES), wall, cost)
}

fn tokio(operation: impl FnOnce() -> u64 + Send + 'static) -> bool {
    TOKIO
        .block_on(async { timeout(NEAR, tokio::task::spawn_blocking(operation)).await })
        .is_err()
}

/// Cancels the operation after the timeout with a flag, because Tokio does not cancel it.
fn tokio_and_cancel() -> bool {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    let late = tokio(move || operations::obey(1, || flag.load(Ordering::Relaxed)));
    cancelled.store(true, Ordering::Relaxed);
    late
}

pub(crate) fn sync(options: &Options) -> Vec<Finding> {
    // The gaps in which an operation ends: one that stops when cancelled, and one that does not.
    let (short, long) = (2 * NEAR, 7 * NEAR);
    let mut group = Group::new(options, "limit of 1 ms, sync");
    let obeyed = group.lane(|| late(short, || annotated::obey(1).is_err()));
    let ignored = group.lane(|| late(long, || annotated::ignore(1).is_err()));
    let parked = group.lane(|| {
        late(short, || {
            thread::park_timeout(NEAR);
            true
        })
    });
    let tokio_obeyed = group.lane(|| late(short, tokio_and_cancel));
    let tokio_ignored = group.lane(|| late(long, || tokio(|| operations::ignore(1))));
    group.ratio("S14a", Figure::Median, obeyed, parked);
    group.ratio("S14b", Figure::Median, ignored, parked);
    group.ratio("S14c", Figure::Median, obeyed, tokio_obeyed);
    group.ratio("S14d", Figure::Median, ignored, tokio_ignored);
    group.run(ROUNDS)
}

pub(crate) fn awaited(options: &Options) -> Vec<Finding> {
    let runtime = &current_thread();
    let mut group = Group::new(options, "limit of 1 ms, async");
    let ours = group.lane(|| {
        late(Duration::ZERO, || {
            runtime.block_on(annotated::never()).is_err()
        })
    });
    let of_tokio = group.lane(|| {
        late(Duration::ZERO, || {
            runtime
                .block_on(async { timeout(NEAR, pending::<()>()).await })
                .is_err()
        })
    });
    group.ratio("A8", Figure::Median, ours, of_tokio);
    group.run(ROUNDS)
}
