//! [`Course`]: the planned events of one call, drawn from the seed.

use std::time::Duration;

use fastrand::Rng;

/// Where the operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Worker,
    Inline,
    AsyncInline,
    Task,
    AsyncOnWorker,
}

impl Way {
    pub(crate) const EVERY: [Self; 5] = [
        Self::Worker,
        Self::Inline,
        Self::AsyncInline,
        Self::Task,
        Self::AsyncOnWorker,
    ];

    /// The name of the calls that run in this place.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Inline => "inline",
            Self::AsyncInline => "async inline",
            Self::Task => "task",
            Self::AsyncOnWorker => "async on worker",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::EVERY.into_iter().find(|way| way.name() == name)
    }
}

/// How the call is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Written {
    Attribute,
    /// With `cancel = false`, where the place allows it.
    NeverCancelled,
    /// As a `Timeout` policy.
    Policy,
}

/// The behaviour of the operation before it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Nothing,
    /// Yields to other threads or tasks once.
    Yield,
    /// Waits until its token is cancelled.
    UntilCancelled,
    /// Sleeps without a check of its token.
    Nap(Duration),
    /// The same, and blocks its thread.
    Block(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Success,
    Error,
    Panic,
}

/// The event that ends the call before its operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Nothing,
    Limit,
    Upstream(Duration),
    /// The call's future is dropped.
    Drop(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) way: Way,
    pub(crate) written: Written,
    pub(crate) limit: Duration,
    pub(crate) work: Work,
    pub(crate) end: End,
    /// A possible early end. With `Nothing`, the call ends with its operation.
    pub(crate) stop: Stop,
}

const FAR: Duration = Duration::from_secs(60);

impl Course {
    /// A random course. Most calls are quick.
    pub(crate) fn any(dice: &mut Dice, is_async: bool) -> Self {
        let way = if is_async {
            dice.one_of([Way::AsyncInline, Way::Task, Way::AsyncOnWorker])
        } else {
            dice.one_of([Way::Worker, Way::Inline])
        };
        let near = dice.micros(1_000, 4_500);
        let nap = |dice: &mut Dice, least: Duration, span: u64| {
            let nap = least + dice.micros(0, span);
            dice.one_of([Work::Nap(nap), Work::Block(nap)])
        };
        let (limit, work, stop) = match dice.below(100) {
            0..80 => {
                let work = dice.one_of([Work::Nothing, Work::Yield]);
                (FAR, work, Stop::Nothing)
            }
            // Ends close to the limit.
            80..86 => {
                let limit = near + Duration::from_micros(500);
                (limit, nap(dice, near, 1_000), Stop::Limit)
            }
            86..90 => {
                let late = nap(dice, near + Duration::from_micros(500), 3_000);
                (near, late, Stop::Limit)
            }
            90..94 => (
                FAR,
                Work::UntilCancelled,
                Stop::Upstream(dice.micros(0, 300)),
            ),
            94..97 if is_async => {
                let about = nap(dice, Duration::ZERO, 1_000);
                let work = dice.one_of([Work::UntilCancelled, about]);
                (FAR, work, Stop::Drop(dice.micros(0, 1_000)))
            }
            _ => (near, Work::UntilCancelled, Stop::Limit),
        };
        let can_be_cancelled_late = stop != Stop::Limit || !matches!(work, Work::UntilCancelled);
        let written = match dice.below(3) {
            0 if can_be_cancelled_late => Written::NeverCancelled,
            1 => Written::Policy,
            _ => Written::Attribute,
        };
        Self {
            way,
            written,
            limit,
            work,
            end: match dice.below(10) {
                0..6 => End::Success,
                6..9 => End::Error,
                _ => End::Panic,
            },
            stop,
        }
    }

    /// The course of call `number` in the phase of quick calls with far limits.
    pub(crate) fn far(way: Way, number: usize) -> Self {
        Self {
            way,
            written: Written::Attribute,
            limit: FAR,
            work: Work::Nothing,
            end: match number % 1_000 {
                0 => End::Panic,
                number if number % 3 == 0 => End::Error,
                _ => End::Success,
            },
            stop: Stop::Nothing,
        }
    }

    /// A call that ends by its limit.
    pub(crate) fn times_out(way: Way, limit: Duration) -> Self {
        Self {
            way,
            written: Written::Attribute,
            limit,
            work: Work::UntilCancelled,
            end: End::Error,
            stop: Stop::Limit,
        }
    }
}

/// Pseudo-random numbers, the same ones for each seed.
pub(crate) struct Dice(Rng);

impl Dice {
    /// Each `place` has its own sequence.
    pub(crate) fn new(seed: u64, place: u64) -> Self {
        let seed = Rng::with_seed(seed).u64(..);
        Self(Rng::with_seed(seed ^ place))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    fn micros(&mut self, least: u64, end: u64) -> Duration {
        Duration::from_micros(self.0.u64(least..end))
    }

    fn one_of<T: Copy, const N: usize>(&mut self, choice: [T; N]) -> T {
        choice[self.0.usize(..N)]
    }
}
