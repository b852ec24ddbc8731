//! [`Measured`]: the measurements of one batch of calls.

use std::time::{Duration, Instant};

use crate::meter::{Cost, Meter};

/// The maximum duration of a batch of blocks.
const MAX_TIME: Duration = Duration::from_millis(200);

/// The measurements of one batch. Times are in nanoseconds, and totals are per call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    median: f64,
    tail: f64,
    worst: f64,
    wall: f64,
    cpu: f64,
    allocations: f64,
    bytes: f64,
}

/// One of the numbers of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// The median duration of a call.
    Median,
    /// The 99th percentile of the durations.
    Tail,
    /// The longest call.
    Worst,
    /// Elapsed time of the batch per call of all callers.
    Wall,
    /// Calls per second, over all callers.
    Throughput,
    /// Processor time of the whole process per call.
    Cpu,
    /// Allocations per call.
    Allocations,
    /// Allocated bytes per call, minus the bytes that the batch excludes.
    Bytes,
    /// Bytes that each pending call holds.
    Held,
    /// Another number, such as a number of threads.
    Count,
}

impl Figure {
    pub(crate) const ALL: [Self; 10] = [
        Self::Median,
        Self::Tail,
        Self::Worst,
        Self::Wall,
        Self::Throughput,
        Self::Cpu,
        Self::Allocations,
        Self::Bytes,
        Self::Held,
        Self::Count,
    ];

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Median => "ns",
            Self::Tail => "ns, 99 %",
            Self::Worst => "ns, longest",
            Self::Wall => "ns, wall",
            Self::Throughput => "calls/s",
            Self::Cpu => "ns, CPU",
            Self::Allocations => "allocations",
            Self::Bytes => "bytes",
            Self::Held => "bytes held",
            Self::Count => "",
        }
    }
}

impl Measured {
    /// Creates a batch of `calls` calls that took `wall` in total. `samples` are durations of calls
    /// in nanoseconds.
    pub(crate) fn new(mut samples: Vec<f64>, calls: u64, wall: Duration, cost: Cost) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |hundredths: usize| {
            let last = samples.len().saturating_sub(1);
            samples.get(last * hundredths / 100).copied()
        };
        let calls = number(calls.max(1));
        Self {
            median: at(50).unwrap_or(f64::NAN),
            tail: at(99).unwrap_or(f64::NAN),
            worst: at(100).unwrap_or(f64::NAN),
            wall: nanoseconds(wall) / calls,
            cpu: nanoseconds(cost.cpu) / calls,
            allocations: number(cost.allocations) / calls,
            bytes: number(cost.bytes) / calls,
        }
    }

    /// Creates a batch with a single number.
    pub(crate) fn only(value: f64) -> Self {
        let batch = Self {
            median: value,
            ..Self::default()
        };
        batch.without_cost()
    }

    /// Excludes bytes that every implementation has to allocate.
    pub(crate) fn without_bytes(mut self, bytes: usize) -> Self {
        self.bytes -= number(bytes as u64);
        self
    }

    /// Marks processor time and allocations as not measured.
    pub(crate) fn without_cost(mut self) -> Self {
        self.cpu = f64::NAN;
        self.allocations = f64::NAN;
        self.bytes = f64::NAN;
        self
    }

    pub(crate) fn get(&self, figure: Figure) -> f64 {
        match figure {
            Figure::Median | Figure::Held | Figure::Count => self.median,
            Figure::Tail => self.tail,
            Figure::Worst => self.worst,
            Figure::Wall => self.wall,
            Figure::Throughput => 1e9 / self.wall,
            Figure::Cpu => self.cpu,
            Figure::Allocations => self.allocations,
            Figure::Bytes => self.bytes,
        }
    }
}

/// Measures calls that are too short for a clock reading each. Every sample is the mean of a block.
pub(crate) fn blocks(count: u32, calls: u32, call: impl FnMut()) -> Measured {
    blocks_that_count(count, calls, call, |_| true)
}

/// As [`blocks`], but keeps only the blocks for which `counts` returns `true`.
///
/// Returns fewer than `count` samples if they take longer than [`MAX_TIME`].
pub(crate) fn blocks_that_count(
    count: u32,
    calls: u32,
    mut call: impl FnMut(),
    mut counts: impl FnMut(Duration) -> bool,
) -> Measured {
    let mut samples = Vec::with_capacity(count as usize);
    let mut all = 0;
    let meter = Meter::start();
    let begun = Instant::now();
    while samples.len() < count as usize && begun.elapsed() < MAX_TIME {
        let block = Instant::now();
        for _ in 0..calls {
            call();
        }
        let took = block.elapsed();
        all += u64::from(calls);
        if counts(took) {
            samples.push(nanoseconds(took) / f64::from(calls));
        }
    }
    let wall = begun.elapsed();
    let cost = meter.stop();
    Measured::new(samples, all, wall, cost)
}

pub(crate) fn nanoseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

/// Returns a quartile of the values, ignoring those that are not measured.
pub(crate) fn quartile(values: &[f64], quarters: usize) -> f64 {
    let known = values.iter().copied().filter(|value| !value.is_nan());
    let mut sorted: Vec<_> = known.collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    // Rounds the index, so that the median of an even number of values is the upper middle one.
    sorted
        .get((last * quarters + 2) / 4)
        .copied()
        .unwrap_or(f64::NAN)
}
