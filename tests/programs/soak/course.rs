//! [`Course`]: the planned events of one call, drawn from the seed.

use std::time::Duration;

use super::random::Random;

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
    pub(crate) fn any(random: &mut Random, is_async: bool) -> Self {
        let way = if is_async {
            random.pick(&[Way::AsyncInline, Way::Task, Way::AsyncOnWorker])
        } else {
            random.pick(&[Way::Worker, Way::Inline])
        };
        let near = random.micros(1_000..4_500);
        let nap = |random: &mut Random, least: Duration, span: u64| {
            let nap = least + random.micros(0..span);
            random.pick(&[Work::Nap(nap), Work::Block(nap)])
        };
        let (limit, work, stop) = match random.below(100) {
            0..80 => {
                let work = random.pick(&[Work::Nothing, Work::Yield]);
                (FAR, work, Stop::Nothing)
            }
            // Ends close to the limit.
            80..86 => {
                let limit = near + Duration::from_micros(500);
                (limit, nap(random, near, 1_000), Stop::Limit)
            }
            86..90 => {
                let late = nap(random, near + Duration::from_micros(500), 3_000);
                (near, late, Stop::Limit)
            }
            90..94 => (
                FAR,
                Work::UntilCancelled,
                Stop::Upstream(random.micros(0..300)),
            ),
            94..97 if is_async => {
                let about = nap(random, Duration::ZERO, 1_000);
                let work = random.pick(&[Work::UntilCancelled, about]);
                (FAR, work, Stop::Drop(random.micros(0..1_000)))
            }
            _ => (near, Work::UntilCancelled, Stop::Limit),
        };
        let can_be_cancelled_late = stop != Stop::Limit || !matches!(work, Work::UntilCancelled);
        let written = match random.below(3) {
            0 if can_be_cancelled_late => Written::NeverCancelled,
            1 => Written::Policy,
            _ => Written::Attribute,
        };
        Self {
            way,
            written,
            limit,
            work,
            end: match random.below(10) {
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
