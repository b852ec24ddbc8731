//! Calls whose limit passes, and how long after it the caller is free: S14 and A8.

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

/// `call` says whether time was up; if the machine stood still, an operation may have been in time.
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

/// Tells the operation when its own wait is over, since Tokio does not.
fn tokio_and_tell() -> bool {
    let told = Arc::new(AtomicBool::new(false));
    let its = Arc::clone(&told);
    let late = tokio(move || operations::obey(1, || its.load(Ordering::Relaxed)));
    told.store(true, Ordering::Relaxed);
    late
}

pub(crate) fn sync(options: &Options) -> Vec<Finding> {
    // Until an operation that obeys has seen it; until one that does not has ended.
    let (short, long) = (2 * NEAR, 7 * NEAR);
    let mut group = Group::new(options, "1 ms passed, sync");
    let obeyed = group.lane(|| late(short, || annotated::obey(1).is_err()));
    let ignored = group.lane(|| late(long, || annotated::ignore(1).is_err()));
    let parked = group.lane(|| {
        late(short, || {
            thread::park_timeout(NEAR);
            true
        })
    });
    let tokio_obeyed = group.lane(|| late(short, tokio_and_tell));
    let tokio_ignored = group.lane(|| late(long, || tokio(|| operations::ignore(1))));
    group.ratio("S14a", Figure::Median, obeyed, parked);
    group.ratio("S14b", Figure::Median, ignored, parked);
    group.ratio("S14c", Figure::Median, obeyed, tokio_obeyed);
    group.ratio("S14d", Figure::Median, ignored, tokio_ignored);
    group.run(ROUNDS)
}

pub(crate) fn awaited(options: &Options) -> Vec<Finding> {
    let runtime = &current_thread();
    let mut group = Group::new(options, "1 ms passed, async");
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
