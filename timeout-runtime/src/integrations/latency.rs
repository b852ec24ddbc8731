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
use crate::sync::lock;

/// How many calls have to lie beyond a limit before its place can be trusted.
const BEYOND: u64 = 10;

/// Durations are told apart to a thousandth.
const DIGITS: u8 = 3;

/// How long the calls of each name take, and which limit would cut so many of them.
///
/// It counts the calls that ended by themselves, with an answer or an error, and those that their own limit has cut, which took at least that long. What ended
/// for another reason says nothing about its limit, and is left out. Needs the feature `latency`.
///
/// ```
/// use std::num::NonZeroU64;
/// use timeout_runtime::integrations::latency::Latency;
/// use timeout_runtime::{TimeoutError, timeout};
///
/// #[timeout(name = "quote", ms = 500)]
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

/// The calls of one name.
struct Calls {
    /// Of those that ended by themselves, in microseconds, rounded up.
    ended: Histogram<u64>,
    cut: u64,
    limit: Option<Duration>,
}

impl Calls {
    fn new() -> Self {
        let Ok(ended) = Histogram::new(DIGITS) else {
            unreachable!("five digits are allowed")
        };
        Self {
            ended,
            cut: 0,
            limit: None,
        }
    }

    fn ended_after(&mut self, elapsed: Duration) {
        let micros = elapsed.as_nanos().div_ceil(1000);
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        // What is too long to be told apart is beyond any limit.
        if self.ended.record(micros).is_err() {
            self.cut += 1;
        }
    }

    /// Within what so many of the calls have ended, if that many have.
    fn within(&self, calls: u64) -> Option<Duration> {
        let mut ended = 0;
        self.ended.iter_recorded().find_map(|step| {
            ended += step.count_since_last_iteration();
            (ended >= calls).then(|| Duration::from_micros(step.value_iterated_to()))
        })
    }

    fn advise(&self, name: &'static str, one_in: NonZeroU64) -> Advice {
        let calls = self.ended.len() + self.cut;
        let beyond = calls / one_in;
        Advice {
            name,
            calls,
            cut: self.cut,
            present: self.limit,
            one_in,
            // Those that were cut may have taken any time beyond, so they count as the slowest.
            limit: self.within(calls - beyond),
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
        let is_cut = match event.kind {
            EventKind::Succeeded | EventKind::Failed(_) => false,
            EventKind::TimedOut => true,
            _ => return,
        };
        let mut names = lock(&*self.names);
        let calls = names.entry(event.name).or_insert_with(Calls::new);
        calls.limit = event.limit;
        if is_cut {
            calls.cut += 1;
        } else {
            calls.ended_after(event.elapsed);
        }
    }

    /// The limit that would have cut no more than one in so many of the calls named `name`; `None` if there were none.
    #[must_use]
    pub fn advise(&self, name: &str, one_in: NonZeroU64) -> Option<Advice> {
        let names = lock(&*self.names);
        let (name, calls) = names.get_key_value(name)?;
        Some(calls.advise(name, one_in))
    }

    /// The same for every name, in order.
    #[must_use]
    pub fn advise_all(&self, one_in: NonZeroU64) -> Vec<Advice> {
        let names = lock(&*self.names);
        names
            .iter()
            .map(|(name, calls)| calls.advise(name, one_in))
            .collect()
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
    /// How many of them their own limit has cut.
    pub cut: u64,
    /// The limit of the last of them.
    pub present: Option<Duration>,
    /// No more than one call in so many was to be cut.
    pub one_in: NonZeroU64,
    /// The limit that would have cut no more, to a thousandth; `None` if more than that were cut already, so that it lies beyond the limit that
    /// they had.
    pub limit: Option<Duration>,
}

impl Advice {
    /// Whether there were too few calls to tell: fewer than ten lie beyond the limit.
    #[must_use]
    pub fn is_thin(&self) -> bool {
        self.calls < self.calls_needed()
    }

    /// How many calls it takes to tell.
    #[must_use]
    pub fn calls_needed(&self) -> u64 {
        self.one_in.get().saturating_mul(BEYOND)
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            calls,
            cut,
            one_in,
            ..
        } = self;
        write!(f, "`{name}`: {cut} of {calls} calls cut")?;
        if let Some(present) = self.present {
            write!(f, " (limit {})", Rounded(present))?;
        }
        match self.limit {
            Some(limit) => write!(f, "; {} would cut 1 in {one_in}", Rounded(limit))?,
            None => write!(f, "; to cut 1 in {one_in} takes a longer one")?,
        }
        if self.is_thin() {
            write!(f, "; thin evidence, wants {} calls", self.calls_needed())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CallId, Failure};
    use std::time::SystemTime;

    const LIMIT: Duration = Duration::from_millis(500);

    fn tell(latency: &Latency, kind: EventKind<'_>, millis: u64) {
        latency.take_in(&Event {
            timestamp: SystemTime::UNIX_EPOCH,
            call: CallId::fresh(),
            name: "quote",
            worker: None,
            elapsed: Duration::from_millis(millis),
            limit: Some(LIMIT),
            kind,
        });
    }

    /// Calls of 1 ms, 2 ms and so on, and then some that were cut.
    fn calls(ended: u64, cut: u64) -> Latency {
        let latency = Latency::new();
        for millis in 1..=ended {
            tell(&latency, EventKind::Succeeded, millis);
        }
        for _ in 0..cut {
            tell(&latency, EventKind::TimedOut, 500);
        }
        latency
    }

    fn advise(latency: &Latency, one_in: u64) -> Advice {
        let one_in = NonZeroU64::new(one_in).expect("not zero");
        latency.advise("quote", one_in).expect("there were calls")
    }

    /// The limits are the upper ends of what is not told apart.
    #[allow(clippy::unnecessary_wraps)] // What it is compared with may be none.
    fn micros(micros: u64) -> Option<Duration> {
        Some(Duration::from_micros(micros))
    }

    #[test]
    fn the_limit_leaves_no_more_than_one_in_so_many_beyond() {
        let latency = calls(100, 0);
        assert_eq!(advise(&latency, 100).limit, micros(99_007));
        assert_eq!(advise(&latency, 10).limit, micros(90_047));
        assert_eq!(advise(&latency, 4).limit, micros(75_007));
        // Of a hundred calls none may be beyond, if one in a thousand may.
        assert_eq!(advise(&latency, 1000).limit, micros(100_031));
        assert_eq!(advise(&latency, 7).limit, micros(86_015));
    }

    #[test]
    fn the_limit_is_exact_to_a_thousandth_and_never_too_short() {
        for length in [1, 999, 1500, 59_999, 86_400_000] {
            let latency = Latency::new();
            tell(&latency, EventKind::Succeeded, length);
            let limit = advise(&latency, 10).limit.expect("a limit");
            let exact = Duration::from_millis(length);
            assert!((exact..=exact + exact / 1000).contains(&limit), "{limit:?}");
        }
    }

    #[test]
    fn calls_that_were_cut_took_at_least_as_long_as_all_others() {
        let latency = calls(90, 10);
        let advice = advise(&latency, 5);
        assert_eq!(
            (advice.calls, advice.cut, advice.present),
            (100, 10, Some(LIMIT))
        );
        assert_eq!(advice.limit, micros(80_063));
        assert_eq!(advise(&latency, 10).limit, micros(90_047));
        // More were cut than one in a hundred: how long that one takes nobody knows.
        assert_eq!(advise(&latency, 100).limit, None);
        assert_eq!(advise(&calls(0, 3), 10).limit, None);
    }

    #[test]
    fn failures_count_and_what_ended_for_another_reason_does_not() {
        let latency = calls(1, 0);
        let failure = || Failure::Error("no".into());
        tell(&latency, EventKind::Failed(failure()), 7);
        for kind in [
            EventKind::DeadlineExceeded,
            EventKind::Cancelled,
            EventKind::Dropped,
            EventKind::NotStarted(crate::error::Cause::NoWorker),
            EventKind::AbandonedWorkerSucceeded,
            EventKind::AbandonedWorkerFailed(failure()),
        ] {
            tell(&latency, kind, 400);
        }
        let advice = advise(&latency, 100);
        assert_eq!((advice.calls, advice.cut), (2, 0));
        assert_eq!(advice.limit, micros(7_003));
    }

    #[test]
    fn evidence_is_thin_while_fewer_than_ten_calls_lie_beyond() {
        for (calls, one_in, is_thin) in [(99, 10, true), (100, 10, false), (100, 11, true)] {
            let advice = advise(&self::calls(calls, 0), one_in);
            assert_eq!(advice.is_thin(), is_thin, "{calls}, {one_in}");
        }
        assert_eq!(advise(&calls(1, 0), 1000).calls_needed(), 10_000);
        assert_eq!(advise(&calls(1, 0), u64::MAX).calls_needed(), u64::MAX);
    }

    #[test]
    fn advice_is_one_line() {
        assert_eq!(
            advise(&calls(90, 10), 10).to_string(),
            "`quote`: 10 of 100 calls cut (limit 500ms); 90.0ms would cut 1 in 10"
        );
        assert_eq!(
            advise(&calls(0, 3), 10).to_string(),
            "`quote`: 3 of 3 calls cut (limit 500ms); to cut 1 in 10 takes a longer one; thin evidence, wants 100 calls"
        );
    }

    #[test]
    fn names_are_kept_apart() {
        let latency = calls(2, 0);
        let one_in = NonZeroU64::MIN;
        assert_eq!(latency.advise("other", one_in), None);
        assert_eq!(latency.advise_all(one_in), [advise(&latency, 1)]);
    }
}
