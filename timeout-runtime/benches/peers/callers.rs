//! [`Callers`]: threads that make calls back to back for a given time.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::measured::{Measured, nanoseconds};
use crate::meter::{Cost, Meter};

/// The number of unmeasured calls before the batch, which start workers and partners.
const WARM_UP: u64 = 3;
/// The maximum number of samples of a caller. Further calls are only counted.
const SAMPLES: usize = 1 << 16;

/// The number of callers, and the time for which they make calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callers {
    pub(crate) count: usize,
    pub(crate) time: Duration,
    /// The sleep between two calls. Its processor time counts, but its duration does not.
    pub(crate) pause: Option<Duration>,
}

/// The measurements of one caller.
struct Record {
    begun: Instant,
    ended: Instant,
    calls: u64,
    samples: Vec<f64>,
}

impl Callers {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            count,
            time: Duration::from_millis(30),
            pause: None,
        }
    }

    /// Measures a batch. Each caller gets its own call from `make`.
    pub(crate) fn measure<C: FnMut(u64) -> u64>(&self, make: impl Fn() -> C + Sync) -> Measured {
        let barrier = Barrier::new(self.count + 1);
        thread::scope(|scope| {
            let callers: Vec<_> = (0..self.count)
                .map(|_| scope.spawn(|| self.call(&barrier, make())))
                .collect();
            barrier.wait(); // all callers are warmed up
            let meter = Meter::start();
            barrier.wait(); // starts the calls
            barrier.wait(); // all callers have finished, and no call is dropped yet
            let cost = meter.stop();
            let records = callers
                .into_iter()
                .map(|caller| caller.join().expect("a failed call exits the process"));
            summary(records.collect(), cost)
        })
    }

    fn call(&self, barrier: &Barrier, mut call: impl FnMut(u64) -> u64) -> Record {
        let mut x = 0;
        for _ in 0..WARM_UP {
            x = black_box(call(x));
        }
        let mut samples = Vec::with_capacity(SAMPLES);
        barrier.wait();
        barrier.wait();
        let begun = Instant::now();
        let mut calls = 0;
        let mut before = begun;
        let ended = loop {
            x = black_box(call(x));
            calls += 1;
            let after = Instant::now();
            if samples.len() < SAMPLES {
                samples.push(nanoseconds(after - before));
            }
            if after - begun >= self.time {
                break after;
            }
            before = after;
            if let Some(pause) = self.pause {
                thread::sleep(pause);
                before = Instant::now();
            }
        };
        barrier.wait();
        Record {
            begun,
            ended,
            calls,
            samples,
        }
    }
}

fn summary(records: Vec<Record>, cost: Cost) -> Measured {
    let begun = records.iter().map(|record| record.begun).min();
    let ended = records.iter().map(|record| record.ended).max();
    let wall = ended
        .zip(begun)
        .map_or(Duration::ZERO, |(ended, begun)| ended - begun);
    let calls = records.iter().map(|record| record.calls).sum();
    let samples = records.into_iter().flat_map(|record| record.samples);
    Measured::new(samples.collect(), calls, wall, cost)
}
