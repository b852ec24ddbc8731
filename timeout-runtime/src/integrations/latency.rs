//! [`Latency`]: how long calls take, and which limit would cut how many of them.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::error::Rounded;
use crate::event::listener::{ListenerHandle, add_listener};
use crate::event::{Event, EventKind};
use crate::one_line::OneLine;
use crate::sync::lock;

/// How many calls have to lie beyond a limit before its place can be trusted.
const BEYOND: u64 = 10;

/// Durations are told apart to a thousandth, up to a year, in microseconds.
const DIGITS: u8 = 3;
const LONGEST: u64 = 365 * 24 * 60 * 60 * 1_000_000;

/// How long the calls of each name take, and which limit would cut so many of them.
///
/// It counts the calls that ended by themselves, with an answer or an error, and those that their own limit has cut, or would have without grace. How long these would have
/// taken nobody knows, only that it is longer. The same is known of calls that were given up, at an earlier deadline or by a caller who left: how many of the calls take longer than a given
/// time is reckoned from those that were still running by then (the [Kaplan-Meier estimator](https://en.wikipedia.org/wiki/Kaplan%E2%80%93Meier_estimator)). That is right as long as callers
/// give up for reasons of their own; if they have little time just when the calls are slow, the limit comes out too short. Calls that were not started are left out. Needs the feature
/// `latency`.
///
/// An error that comes at once, such as a refused connection, is a call that ended soon: where there are many, look into that first.
///
/// All calls since the beginning count alike. To see what holds now, begin with a new one now and then.
///
/// ```
/// use std::num::NonZeroU64;
/// use timeout_runtime::integrations::latency::Latency;
/// use timeout_runtime::{TimeoutError, timeout};
///
/// #[timeout(name = "quote", secs = 60)]
/// fn quote() -> Result<u32, TimeoutError> {
///     Ok(7)
/// }
///
/// let latency = Latency::new();
/// let _listener = latency.listen();
/// for _ in 0..20 {
///     quote()?;
/// }
/// let one_in_ten = NonZeroU64::new(10).unwrap();
/// let advice = latency.advise("quote", one_in_ten).expect("there were calls");
/// assert_eq!((advice.calls, advice.cut), (20, 0));
/// assert!(advice.is_thin()); // of 20 calls, two lie beyond a limit that cuts one in ten
/// println!("{advice}");
/// # Ok::<(), TimeoutError>(())
/// ```
#[derive(Clone, Default)]
pub struct Latency {
    names: Arc<Mutex<BTreeMap<&'static str, Calls>>>,
}

/// The calls of one name. Times are in microseconds.
#[derive(Clone)]
struct Calls {
    /// How long those took that ended by themselves, rounded up.
    ended: Histogram<u64>,
    /// How long the others had taken when they were cut or given up, rounded down.
    outlasted: Histogram<u64>,
    cut: u64,
    /// The limit of the last of them.
    present: Option<Duration>,
}

/// What is known of how long an operation takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    ByItself,
    /// By its limit: it takes longer.
    Cut,
    /// For another reason: it takes longer, too.
    GivenUp,
}

impl Ending {
    fn of(event: &Event<'_>) -> Option<Self> {
        Some(match event.kind {
            // In grace: without it, the limit would have cut the call.
            EventKind::Succeeded if event.limit.is_some_and(|limit| event.elapsed > limit) => {
                Self::Cut
            }
            EventKind::Succeeded | EventKind::Failed(_) => Self::ByItself,
            EventKind::TimedOut => Self::Cut,
            EventKind::DeadlineExceeded | EventKind::Cancelled | EventKind::Dropped => {
                Self::GivenUp
            }
            EventKind::NotStarted(_)
            | EventKind::AbandonedWorkerSucceeded
            | EventKind::AbandonedWorkerFailed(_) => return None,
        })
    }
}

fn histogram() -> Histogram<u64> {
    let Ok(histogram) = Histogram::new(DIGITS) else {
        unreachable!("five digits are allowed")
    };
    histogram
}

/// Both together.
fn sum(one: &Histogram<u64>, other: &Histogram<u64>) -> Histogram<u64> {
    let mut sum = one.clone();
    if sum.add(other).is_err() {
        unreachable!("it grows")
    }
    sum
}

#[allow(clippy::cast_precision_loss)] // Nobody makes as many calls.
fn as_f64(calls: u64) -> f64 {
    calls as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is a number of calls.
fn rounded(calls: f64) -> u64 {
    calls.round() as u64
}

impl Calls {
    fn new() -> Self {
        Self {
            ended: histogram(),
            outlasted: histogram(),
            cut: 0,
            present: None,
        }
    }

    fn take_in(&mut self, ending: Ending, event: &Event<'_>) {
        self.present = event.limit;
        let limit = event.limit.unwrap_or(Duration::MAX);
        let (times, micros) = match ending {
            Ending::ByItself => (&mut self.ended, event.elapsed.as_nanos().div_ceil(1000)),
            // What it took beyond its limit, it took because it was told, or was not.
            Ending::Cut => (&mut self.outlasted, event.elapsed.min(limit).as_micros()),
            Ending::GivenUp => (&mut self.outlasted, event.elapsed.as_micros()),
        };
        self.cut += u64::from(ending == Ending::Cut);
        let micros = u64::try_from(micros).map_or(LONGEST, |micros| micros.min(LONGEST));
        // It grows up to there.
        let _ = times.record(micros);
    }

    /// Within what time all but so many of the calls end, if that is known, and for how many calls the evidence stands.
    fn limit(&self, one_in: NonZeroU64) -> (Option<Duration>, u64) {
        let times = sum(&self.ended, &self.outlasted);
        // As long as `times`, since a histogram tells its last count for whatever lies beyond its end.
        let ended = sum(&Histogram::new_from(&times), &self.ended);
        // At each time, `running` of `of` calls still run; these were `share` of all when one of them was given up last.
        let (mut running, mut of, mut share) = (times.len(), times.len(), 1.0);
        let mut evidence = as_f64(of);
        let limit = times.iter_recorded().find_map(|step| {
            let time = step.value_iterated_to();
            let ended = ended.count_at(time);
            let outlasted = step.count_at_value() - ended;
            running -= ended;
            evidence = as_f64(of) / share;
            let beyond = share * as_f64(running) / as_f64(of);
            // The share is a product of fractions, and may be off by a little.
            if beyond * as_f64(one_in.get()) <= 1.0 + 1e-9 {
                return Some(Duration::from_micros(time));
            }
            if outlasted > 0 {
                running -= outlasted;
                (of, share) = (running, beyond);
            }
            None
        });
        (limit, rounded(evidence))
    }

    fn advise(&self, name: &'static str, one_in: NonZeroU64) -> Advice {
        let (limit, evidence) = self.limit(one_in);
        Advice {
            name,
            calls: self.ended.len() + self.cut,
            cut: self.cut,
            given_up: self.outlasted.len() - self.cut,
            evidence,
            present: self.present,
            one_in,
            limit,
        }
    }
}

impl Latency {
    /// Nothing so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the events of all calls in this process from now on, for as long as the handle is there.
    #[must_use = "dropping the handle ends it"]
    pub fn listen(&self) -> ListenerHandle {
        let latency = self.clone();
        add_listener(move |event| latency.take_in(event))
    }

    /// Takes in an event: for a listener of one's own, such as that of a `Timeout`.
    pub fn take_in(&self, event: &Event<'_>) {
        if let Some(ending) = Ending::of(event) {
            let mut names = lock(&*self.names);
            let calls = names.entry(event.name).or_insert_with(Calls::new);
            calls.take_in(ending, event);
        }
    }

    /// The limit that would have cut no more than one in so many of the calls named `name`; `None` if there were none.
    #[must_use]
    pub fn advise(&self, name: &str, one_in: NonZeroU64) -> Option<Advice> {
        let names = lock(&*self.names);
        let (name, calls) = names.get_key_value(name)?;
        let (name, calls) = (*name, calls.clone());
        // Reckoning takes a while, and calls that end now need the lock.
        drop(names);
        Some(calls.advise(name, one_in))
    }

    /// The same for every name, in order.
    #[must_use]
    pub fn advise_all(&self, one_in: NonZeroU64) -> Vec<Advice> {
        let names = lock(&*self.names).clone();
        let advice = names.iter().map(|(name, calls)| calls.advise(name, one_in));
        advice.collect()
    }
}

impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = lock(&*self.names);
        f.debug_set().entries(names.keys()).finish()
    }
}

/// Which limit the calls of one name would want.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// The name of the calls.
    pub name: &'static str,
    /// How many there were that ended by themselves or were cut.
    pub calls: u64,
    /// How many of them their own limit has cut, or would have without grace.
    pub cut: u64,
    /// How many more had been given up before that, by an earlier deadline or by their caller.
    pub given_up: u64,
    /// For how many calls that nobody gave up the evidence stands: `calls`, and some more or fewer where others were given up.
    pub evidence: u64,
    /// The limit of the last of them.
    pub present: Option<Duration>,
    /// No more than one call in so many was to be cut.
    pub one_in: NonZeroU64,
    /// The limit that would have cut no more, to a thousandth; `None` if so many were cut or given up that nobody knows, since it lies beyond the times that they
    /// had.
    pub limit: Option<Duration>,
}

impl Advice {
    /// Whether there were too few calls to tell: the evidence has to stand for ten calls beyond the limit.
    #[must_use]
    pub fn is_thin(&self) -> bool {
        self.evidence < self.calls_needed()
    }

    /// How many calls it takes to tell.
    #[must_use]
    pub fn calls_needed(&self) -> u64 {
        self.one_in.get().saturating_mul(BEYOND)
    }
}

/// To three digits, so that what is read off it does not cut more.
fn rounded_up(limit: Duration) -> Duration {
    let micros = limit.as_micros();
    let digits = micros.checked_ilog10().unwrap_or(0);
    let step = 10_u128.pow(digits.saturating_sub(2));
    let micros = micros.div_ceil(step) * step;
    Duration::from_micros(u64::try_from(micros).unwrap_or(LONGEST))
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            calls,
            cut,
            given_up,
            one_in,
            ..
        } = self;
        write!(f, "`{}`: {cut} of {calls} calls cut", OneLine(name))?;
        if let Some(present) = self.present {
            write!(f, " (limit {})", Rounded(present))?;
        }
        if *given_up > 0 {
            write!(f, ", {given_up} more given up")?;
        }
        match self.limit {
            Some(limit) => write!(
                f,
                "; {} would cut 1 in {one_in}",
                Rounded(rounded_up(limit))
            )?,
            None => write!(f, "; to cut 1 in {one_in} takes a longer one")?,
        }
        if self.is_thin() {
            write!(f, "; thin evidence, wants {} calls", self.calls_needed())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
