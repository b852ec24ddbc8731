//! [`Latency`]: measures how long calls take, and recommends time limits for them.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::event::listener::add_listener;
use crate::event::{Event, EventKind};
use crate::one_line::OneLine;
use crate::outcome::Rounded;
use crate::registry::Registration;
use crate::sync::lock;

/// The number of calls beyond a limit from which advice on that limit is reliable.
const BEYOND: u64 = 10;

/// The precision of durations: three significant digits.
const DIGITS: u8 = 3;

/// The longest recorded duration, one year, in microseconds.
const LONGEST: u64 = 365 * 24 * 60 * 60 * 1_000_000;

/// Measures how long the calls of each name take, and recommends limits.
///
/// Needs the feature `latency`.
///
/// - A call that returned a value or failed in time counts with its duration.
/// - A call is *cut* if its own limit ended it, or would have ended it without grace. Such a call
///   takes longer than its limit; the actual duration is unknown.
/// - A call is *given up* if it ended early for another reason: an inherited deadline, a
///   cancellation, or a dropped future. Its duration is also unknown.
/// - A call that was not started does not count.
///
/// The [Kaplan-Meier estimator] computes from these numbers how many calls take longer than a given
/// time. The estimate is right if callers give up for reasons that are independent of the duration.
/// If callers have little time exactly when calls are slow, the recommended limit is too short.
///
/// An immediate error, such as a refused connection, counts as a short call. If there are many,
/// find their cause first.
///
/// A `Latency` records from [`new`](Self::new) on, until its last clone is dropped. All recorded
/// calls have the same weight. To see the current durations, create a new `Latency` from time to
/// time.
///
/// [Kaplan-Meier estimator]: https://en.wikipedia.org/wiki/Kaplan%E2%80%93Meier_estimator
///
/// # Examples
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
/// for _ in 0..20 {
///     quote()?;
/// }
/// let one_in_ten = NonZeroU64::new(10).unwrap();
/// let advice = &latency.advise(one_in_ten)["quote"];
/// assert_eq!((advice.calls, advice.cut), (20, 0));
/// assert!(advice.is_thin); // of 20 calls, only two are beyond a limit that cuts one in ten
/// println!("{advice}");
/// # Ok::<(), TimeoutError>(())
/// ```
#[derive(Clone)]
pub struct Latency {
    names: Arc<Names>,
    #[allow(dead_code)] // Dropping the last clone removes the listener.
    listener: Arc<Registration>,
}

/// The recorded calls of each name.
#[derive(Default)]
struct Names(Mutex<BTreeMap<&'static str, Calls>>);

/// The calls of one name. Times are in microseconds.
#[derive(Clone)]
struct Calls {
    /// The durations of the completed calls, rounded up.
    completed: Histogram<u64>,
    /// Lower bounds of the durations of cut and given-up calls, rounded down.
    interrupted: Histogram<u64>,
    /// The number of cut calls among `interrupted`.
    cut: u64,
    /// The limit of the latest call.
    present: Option<Duration>,
}

/// How a call ended, and so how much its event says about the duration of the operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The operation returned or failed: its duration is known.
    Completed,
    /// The call's own limit passed: the operation takes longer.
    Cut,
    /// The call ended for another reason: the operation takes longer.
    GivenUp,
}

impl Ending {
    fn of(event: &Event<'_>) -> Option<Self> {
        Some(match event.kind {
            // A success within the grace: without grace, the limit would have cut the call.
            EventKind::Succeeded if event.limit.is_some_and(|limit| event.elapsed > limit) => {
                Self::Cut
            }
            EventKind::Succeeded | EventKind::Failed(_) => Self::Completed,
            EventKind::TimedOut => Self::Cut,
            EventKind::DeadlineExceeded | EventKind::Cancelled | EventKind::Dropped => {
                Self::GivenUp
            }
            EventKind::NotStarted(_)
            | EventKind::AbandonedWorkerSucceeded
            | EventKind::AbandonedWorkerStopped(_)
            | EventKind::AbandonedWorkerFailed(_) => return None,
        })
    }
}

fn histogram() -> Histogram<u64> {
    let Ok(histogram) = Histogram::new(DIGITS) else {
        unreachable!("a histogram supports up to five significant digits")
    };
    histogram
}

/// Adds two histograms.
fn sum(one: &Histogram<u64>, other: &Histogram<u64>) -> Histogram<u64> {
    let mut sum = one.clone();
    if sum.add(other).is_err() {
        unreachable!("the histogram resizes automatically")
    }
    sum
}

#[allow(clippy::cast_precision_loss)] // Exact for fewer than 2^52 calls.
fn as_f64(calls: u64) -> f64 {
    calls as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A number of calls.
fn rounded(calls: f64) -> u64 {
    calls.round() as u64
}

impl Calls {
    fn new() -> Self {
        Self {
            completed: histogram(),
            interrupted: histogram(),
            cut: 0,
            present: None,
        }
    }

    fn take_in(&mut self, ending: Ending, event: &Event<'_>) {
        self.present = event.limit;
        let limit = event.limit.unwrap_or(Duration::MAX);
        let (times, micros) = match ending {
            Ending::Completed => (&mut self.completed, event.elapsed.as_nanos().div_ceil(1000)),
            // Time beyond the limit depends on the cancellation, and says nothing about the
            // duration.
            Ending::Cut => (&mut self.interrupted, event.elapsed.min(limit).as_micros()),
            Ending::GivenUp => (&mut self.interrupted, event.elapsed.as_micros()),
        };
        self.cut += u64::from(ending == Ending::Cut);
        let micros = u64::try_from(micros).map_or(LONGEST, |micros| micros.min(LONGEST));
        // Cannot fail: the histogram resizes automatically, and `micros` is bounded.
        let _ = times.record(micros);
    }

    /// Returns the shortest limit that cuts at most one in `one_in` calls, if it is known, and the
    /// number of calls that the estimate is worth.
    fn limit(&self, one_in: NonZeroU64) -> (Option<Duration>, u64) {
        let times = sum(&self.completed, &self.interrupted);
        // Extended to the length of `times`: beyond its end, a histogram returns its last count.
        let completed = sum(&Histogram::new_from(&times), &self.completed);
        // At each time, `running` of `of` calls still run. These `of` calls were `share` of all
        // calls when a call was last interrupted.
        let (mut running, mut of, mut share) = (times.len(), times.len(), 1.0);
        let mut evidence = as_f64(of);
        let limit = times.iter_recorded().find_map(|step| {
            let time = step.value_iterated_to();
            let completed = completed.count_at(time);
            let interrupted = step.count_at_value() - completed;
            running -= completed;
            evidence = as_f64(of) / share;
            let beyond = share * as_f64(running) / as_f64(of);
            // The tolerance covers the rounding errors of `share`, a product of fractions.
            if beyond * as_f64(one_in.get()) <= 1.0 + 1e-9 {
                return Some(Duration::from_micros(time));
            }
            if interrupted > 0 {
                running -= interrupted;
                (of, share) = (running, beyond);
            }
            None
        });
        (limit, rounded(evidence))
    }

    fn advise(&self, name: &'static str, one_in: NonZeroU64) -> Advice {
        let (limit, evidence) = self.limit(one_in);
        let calls_needed = one_in.get().saturating_mul(BEYOND);
        Advice {
            name,
            calls: self.completed.len() + self.cut,
            cut: self.cut,
            given_up: self.interrupted.len() - self.cut,
            evidence,
            calls_needed,
            is_thin: evidence < calls_needed,
            present: self.present,
            one_in,
            limit,
        }
    }
}

impl Names {
    fn take_in(&self, event: &Event<'_>) {
        if let Some(ending) = Ending::of(event) {
            let mut names = lock(&self.0);
            let calls = names.entry(event.name).or_insert_with(Calls::new);
            calls.take_in(ending, event);
        }
    }

    fn advise(&self, one_in: NonZeroU64) -> BTreeMap<&'static str, Advice> {
        // Computes outside the lock, because calls that end now need it.
        let names = lock(&self.0).clone();
        let advice = names
            .iter()
            .map(|(&name, calls)| (name, calls.advise(name, one_in)));
        advice.collect()
    }
}

impl Latency {
    /// Records the events of all calls in this process from now on, until the last clone of the
    /// returned value is dropped.
    #[must_use = "dropping the value stops the recording"]
    pub fn new() -> Self {
        let names = Arc::<Names>::default();
        let recorded = Arc::clone(&names);
        let listener = add_listener(move |event| recorded.take_in(event));
        Self {
            names,
            listener: Arc::new(listener),
        }
    }

    /// Recommends a limit for the calls of each recorded name: one that cuts at most one in
    /// `one_in` of them.
    #[must_use]
    pub fn advise(&self, one_in: NonZeroU64) -> BTreeMap<&'static str, Advice> {
        self.names.advise(one_in)
    }
}

impl Default for Latency {
    /// The same as [`Latency::new`].
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = lock(&self.names.0);
        f.debug_set().entries(names.keys()).finish()
    }
}

/// The recommended limit for the calls of one name; returned by [`Latency::advise`]. `Display`
/// prints it on one line.
///
/// ```
/// use std::num::NonZeroU64;
/// use std::time::Duration;
/// use timeout_runtime::integrations::latency::Latency;
/// use timeout_runtime::within_blocking;
///
/// let latency = Latency::new();
/// for _ in 0..20 {
///     within_blocking(Duration::from_secs(60), |_token| ())?;
/// }
/// let one_in_two = NonZeroU64::new(2).unwrap();
/// let advice = latency.advise(one_in_two).into_values().next().unwrap();
/// assert!(!advice.is_thin);
/// assert!(advice.limit.is_some_and(|limit| limit < Duration::from_secs(60)));
/// # Ok::<(), timeout_runtime::TimeoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// The name of the calls.
    pub name: &'static str,
    /// The number of calls that completed or were cut.
    pub calls: u64,
    /// The number of these calls that their own limit cut, or would have cut without grace.
    pub cut: u64,
    /// The number of further calls that were given up: ended early by an inherited deadline, a
    /// cancellation, or a dropped future.
    pub given_up: u64,
    /// The number of completed calls that would support the recommendation equally well.
    ///
    /// Equals `calls` if no call was given up, and can otherwise be more or less.
    pub evidence: u64,
    /// The number of calls that a reliable recommendation needs: with so many, ten calls are
    /// expected beyond the limit.
    pub calls_needed: u64,
    /// Whether there are too few calls for a reliable recommendation: `evidence` is less than
    /// `calls_needed`.
    pub is_thin: bool,
    /// The limit of the latest call, if it had one.
    pub present: Option<Duration>,
    /// The requested rate: the limit cuts at most one in so many calls.
    pub one_in: NonZeroU64,
    /// The recommended limit, to a thousandth.
    ///
    /// `None` if too many calls were cut or given up: the limit is then longer than the times that
    /// are known.
    pub limit: Option<Duration>,
}

/// Rounds up to three digits, so that the printed limit does not cut more calls.
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
            None => write!(f, "; cutting 1 in {one_in} needs a longer limit")?,
        }
        if self.is_thin {
            write!(f, "; thin evidence, needs {} calls", self.calls_needed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
