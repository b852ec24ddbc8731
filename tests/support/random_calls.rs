//! Random calls that end close to their limits, generated from a seed.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::time::Duration;

use super::random::Random;
use super::scenario::OpResult;
use super::support::{EVERY_WAY, Way};

/// Within a millisecond of `instant`, and often exactly at it.
fn near(random: &mut Random, instant: Duration) -> Duration {
    match random.below(4) {
        0 => instant,
        1 => instant.saturating_sub(random.micros(0..1000)),
        2 => instant + random.micros(0..50),
        _ => instant + random.micros(0..1000),
    }
}

/// How an operation passes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Blocks its thread and does not check its token.
    Asleep,
    /// Spins, or requests the next poll immediately.
    Busy,
    /// As `Busy`, until its token is cancelled.
    BusyUntilCancelled,
    /// Sleeps until its token is cancelled.
    AsleepUntilCancelled,
}

/// One call. All durations count from its start.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub way: Way,
    pub limit: Duration,
    pub grace: Duration,
    pub cancel: bool,
    pub waits: Waits,
    pub ends: Duration,
    pub result: OpResult,
    /// When the upstream token is cancelled.
    pub upstream: Option<Duration>,
    /// When the enclosing deadline passes.
    pub inherited: Option<Duration>,
    /// When its future is dropped, for an async call.
    pub dropped: Option<Duration>,
    /// Whether a listener is registered all the time.
    pub has_listener: bool,
}

impl Call {
    fn random(random: &mut Random) -> Self {
        let way = random.pick(&EVERY_WAY);
        let limit = Duration::from_micros(1) + random.micros(0..3000);
        let cancel = !random.one_in(4);
        let grace = if cancel && random.one_in(3) {
            random.micros(0..1000)
        } else {
            Duration::ZERO
        };
        let end = if random.one_in(2) {
            limit + grace
        } else {
            limit
        };
        let has_future = !matches!(way, Way::SyncWorker | Way::SyncInline);
        Self {
            way,
            limit,
            grace,
            cancel,
            waits: random.pick(&[
                Waits::Asleep,
                Waits::Busy,
                Waits::BusyUntilCancelled,
                Waits::AsleepUntilCancelled,
            ]),
            ends: near(random, end),
            result: random.pick(&[OpResult::Ok, OpResult::Ok, OpResult::Err, OpResult::Panic]),
            upstream: random.one_in(4).then(|| near(random, end)),
            inherited: random.one_in(4).then(|| near(random, limit)),
            dropped: (has_future && random.one_in(4)).then(|| near(random, end)),
            has_listener: !random.one_in(5),
        }
    }
}

/// The concurrent calls of one seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub calls: Vec<Call>,
    /// How often a listener is added and removed meanwhile.
    pub listeners: u64,
}

impl Scenario {
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let calls = 1 + random.below(4);
        Self {
            calls: (0..calls).map(|_| Call::random(&mut random)).collect(),
            listeners: random.below(20),
        }
    }
}
