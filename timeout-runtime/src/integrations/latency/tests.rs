//! Tests of the recommended limits, with constructed events.

use super::*;
use crate::event::{CallId, Failure};
use crate::outcome::TimeoutError;
use crate::timeout::Timeout;
use std::time::SystemTime;

const LIMIT: Duration = Duration::from_millis(500);

fn record(names: &Names, kind: EventKind<'_>, millis: u64) {
    record_after(names, kind, Duration::from_millis(millis), Some(LIMIT));
}

fn record_after(names: &Names, kind: EventKind<'_>, elapsed: Duration, limit: Option<Duration>) {
    names.take_in(&Event {
        timestamp: SystemTime::UNIX_EPOCH,
        call: CallId::fresh(),
        name: "quote",
        worker: None,
        elapsed,
        limit,
        kind,
    });
}

/// Records `completed` calls of 1 ms, 2 ms and so on, and `cut` calls that were cut.
fn calls(completed: u64, cut: u64) -> Names {
    let names = Names::default();
    for millis in 1..=completed {
        record(&names, EventKind::Succeeded, millis);
    }
    for _ in 0..cut {
        record(&names, EventKind::TimedOut, 500);
    }
    names
}

fn advise(names: &Names, one_in: u64) -> Advice {
    let one_in = NonZeroU64::new(one_in).expect("not zero");
    names
        .advise(one_in)
        .remove("quote")
        .expect("there were calls")
}

/// An expected limit. The histogram rounds up to the end of a bucket, so the numbers are odd.
#[allow(clippy::unnecessary_wraps)] // Compared with an `Option`.
fn micros(micros: u64) -> Option<Duration> {
    Some(Duration::from_micros(micros))
}

#[test]
fn the_limit_cuts_at_most_the_requested_rate() {
    let names = calls(100, 0);
    assert_eq!(advise(&names, 100).limit, micros(99_007));
    assert_eq!(advise(&names, 10).limit, micros(90_047));
    assert_eq!(advise(&names, 4).limit, micros(75_007));
    // One in a thousand of a hundred calls is none.
    assert_eq!(advise(&names, 1000).limit, micros(100_031));
    assert_eq!(advise(&names, 7).limit, micros(86_015));
}

#[test]
fn the_limit_is_exact_to_a_thousandth_and_never_too_short() {
    for length in [1, 999, 1500, 59_999, 86_400_000] {
        let names = Names::default();
        let exact = Duration::from_millis(length);
        record_after(&names, EventKind::Succeeded, exact, None);
        let limit = advise(&names, 10).limit.expect("a limit");
        assert!((exact..=exact + exact / 1000).contains(&limit), "{limit:?}");
    }
    let names = Names::default();
    record_after(
        &names,
        EventKind::Succeeded,
        Duration::from_nanos(1001),
        None,
    );
    assert_eq!(advise(&names, 10).limit, micros(2));
}

#[test]
fn cut_calls_take_longer_than_their_limit() {
    let names = calls(90, 10);
    let advice = advise(&names, 5);
    assert_eq!(
        (advice.calls, advice.cut, advice.present),
        (100, 10, Some(LIMIT))
    );
    assert_eq!(advice.limit, micros(80_063));
    assert_eq!(advise(&names, 10).limit, micros(90_047));
    // More than one in a hundred calls was cut, so their durations are unknown.
    assert_eq!(advise(&names, 100).limit, None);
    assert_eq!(advise(&calls(0, 3), 10).limit, None);
}

#[test]
fn failures_count_as_completed_calls() {
    let names = calls(1, 0);
    record(&names, EventKind::Failed(Failure::Error("no".into())), 7);
    let advice = advise(&names, 100);
    assert_eq!((advice.calls, advice.cut, advice.given_up), (2, 0, 0));
    assert_eq!(advice.limit, micros(7_003));
}

#[test]
fn calls_that_did_not_start_and_late_events_do_not_count() {
    let names = calls(1, 0);
    for kind in [
        EventKind::NotStarted(crate::outcome::Cause::NoWorker),
        EventKind::AbandonedWorkerSucceeded,
        EventKind::AbandonedWorkerStopped(Failure::Unfinished),
        EventKind::AbandonedWorkerFailed(Failure::Error("no".into())),
    ] {
        record(&names, kind, 400);
    }
    assert_eq!(advise(&names, 100), advise(&calls(1, 0), 100));
}

#[test]
fn given_up_calls_take_at_least_as_long_as_they_ran() {
    for kind in [
        EventKind::DeadlineExceeded,
        EventKind::Cancelled,
        EventKind::Dropped,
    ] {
        // Of 100 calls, the ten that take longer are given up after 50 ms.
        let names = Names::default();
        for _ in 0..90 {
            record(&names, EventKind::Succeeded, 1);
        }
        for _ in 0..10 {
            record(&names, kind.clone(), 50);
        }
        let ten = advise(&names, 10);
        assert_eq!((ten.calls, ten.cut, ten.given_up), (90, 0, 10));
        assert_eq!(ten.limit, micros(1_000));
        assert_eq!(advise(&names, 11).limit, None);
    }
}

#[test]
fn calls_given_up_early_do_not_affect_later_times() {
    // Of 100 completed calls, 90 take 10 ms and ten take 300 ms. 100 more are given up after 5 ms.
    let names = Names::default();
    for _ in 0..100 {
        record(&names, EventKind::Cancelled, 5);
    }
    for length in [10; 90].into_iter().chain([300; 10]) {
        record(&names, EventKind::Succeeded, length);
    }
    assert_eq!(advise(&names, 10).limit, micros(10_007));
    assert_eq!(advise(&names, 11).limit, micros(300_031));
}

#[test]
fn calls_under_a_longer_limit_estimate_the_calls_that_a_shorter_limit_cut() {
    // Half of the calls that take longer than 40 ms take 100 ms, the others 200 ms.
    let names = Names::default();
    for (length, count) in [(1, 90), (100, 5), (200, 5)] {
        for _ in 0..count {
            record(&names, EventKind::Succeeded, length);
            let kind = if length > 40 {
                EventKind::TimedOut
            } else {
                EventKind::Succeeded
            };
            record(&names, kind, length.min(40));
        }
    }
    let advice = advise(&names, 20);
    assert_eq!((advice.calls, advice.cut), (200, 10));
    assert_eq!(advice.limit, micros(100_031));
    assert_eq!(advise(&names, 10).limit, micros(1_000));
    assert_eq!(advise(&names, 21).limit, micros(200_063));
}

#[test]
fn durations_saturate_at_one_year() {
    let names = Names::default();
    record_after(&names, EventKind::Succeeded, Duration::MAX, None);
    let year = Duration::from_micros(LONGEST);
    let limit = advise(&names, 1).limit.expect("a limit");
    assert!((year..year + year / 1000).contains(&limit), "{limit:?}");
}

/// Guards against wrong counts for times after the last completed call.
#[test]
fn calls_given_up_after_the_last_completed_call_leave_the_limit_unknown() {
    let names = Names::default();
    let last = Duration::from_micros(2047);
    record_after(&names, EventKind::Succeeded, last, None);
    for millis in [5, 6, 7] {
        record(&names, EventKind::Cancelled, millis);
        assert_eq!(advise(&names, 10).limit, None);
    }
    assert_eq!(advise(&names, 1).limit, micros(2047));
}

/// Computes the limit by the definition of the Kaplan-Meier estimator, factor by factor.
fn expected_limit(calls: &[(u64, bool)], one_in: u64) -> Option<u64> {
    let count = |is: &dyn Fn(u64, bool) -> bool| {
        let count = calls
            .iter()
            .filter(|(time, completed)| is(*time, *completed));
        u32::try_from(count.count()).map(f64::from).expect("few")
    };
    let mut times: Vec<_> = calls.iter().map(|(time, _)| *time).collect();
    times.sort_unstable();
    times.dedup();
    let mut beyond = 1.0;
    times.into_iter().find(|&now| {
        let running = count(&|time, _| time >= now);
        beyond *= 1.0 - count(&|time, completed| time == now && completed) / running;
        let one_in = u32::try_from(one_in).expect("a small number");
        beyond * f64::from(one_in) <= 1.0 + 1e-9
    })
}

#[test]
fn the_limit_matches_the_kaplan_meier_estimator() {
    for seed in 0..2000 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let (longest, most) = (chance.u64(1..2048), chance.u64(1..40));
        let calls = (0..most).map(|_| match chance.u8(..3) {
            // The histogram distinguishes single microseconds up to 2048.
            0 | 1 => (chance.u64(..=longest), true),
            _ => (chance.u64(..=2 * longest), false),
        });
        let calls: Vec<_> = calls.collect();
        let names = Names::default();
        for &(time, completed) in &calls {
            let kind = if completed {
                EventKind::Succeeded
            } else {
                EventKind::Cancelled
            };
            record_after(&names, kind, Duration::from_micros(time), None);
        }
        for one_in in [1, 2, 3, 10, 50] {
            let expected = expected_limit(&calls, one_in).and_then(micros);
            let limit = advise(&names, one_in).limit;
            assert_eq!(limit, expected, "{seed}: {calls:?}, 1 in {one_in}");
        }
    }
}

/// Guards against rounding errors in products of fractions.
#[test]
fn a_rate_that_is_met_exactly_is_accepted() {
    let names = Names::default();
    for (kind, millis, count) in [
        (EventKind::Succeeded, 1, 12),
        (EventKind::Cancelled, 1, 2),
        (EventKind::Succeeded, 2, 3),
        (EventKind::Cancelled, 2, 3),
    ] {
        for _ in 0..count {
            record(&names, kind.clone(), millis);
        }
    }
    // Eight of 20 calls take longer than 1 ms, and half of these longer than 2 ms.
    assert_eq!(advise(&names, 5).limit, micros(2_000));
}

#[test]
fn a_success_within_the_grace_counts_as_cut() {
    let names = calls(9, 0);
    record(&names, EventKind::Succeeded, 700);
    let advice = advise(&names, 20);
    assert_eq!((advice.calls, advice.cut, advice.limit), (10, 1, None));
    assert_eq!(advise(&names, 10).limit, micros(9_007));
}

#[test]
fn a_call_cut_late_counts_with_its_limit() {
    let names = calls(9, 0);
    // As for an inline operation that does not check its token for two seconds.
    record(&names, EventKind::TimedOut, 2_000);
    let second = Duration::from_secs(1);
    for _ in 0..10 {
        record_after(&names, EventKind::Succeeded, second, None);
    }
    // If the cut call counted with two seconds, one in 20 calls would take longer than a second.
    let limit = advise(&names, 21).limit;
    assert_eq!(limit, micros(1_000_447));
}

#[test]
fn evidence_is_thin_below_ten_calls_beyond_the_limit() {
    for (calls, one_in, is_thin) in [(99, 10, true), (100, 10, false), (100, 11, true)] {
        let advice = advise(&self::calls(calls, 0), one_in);
        assert_eq!(advice.is_thin, is_thin, "{calls}, {one_in}");
        assert_eq!(advice.evidence, calls);
    }
    assert_eq!(advise(&calls(1, 0), 1000).calls_needed, 10_000);
    assert_eq!(advise(&calls(1, 0), u64::MAX).calls_needed, u64::MAX);
}

#[test]
fn given_up_calls_are_evidence_up_to_their_end() {
    // Numbers of calls that take 1 ms, are given up after 5 ms, and take 50 ms.
    for (short, given_up, long, one_in, evidence) in [
        (995, 1000, 5, 100, 10),
        (90, 10, 0, 10, 100),
        (0, 10_000, 100, 10, 100),
    ] {
        let names = Names::default();
        for (kind, millis, count) in [
            (EventKind::Succeeded, 1, short),
            (EventKind::Cancelled, 5, given_up),
            (EventKind::Succeeded, 50, long),
        ] {
            for _ in 0..count {
                record(&names, kind.clone(), millis);
            }
        }
        let advice = advise(&names, one_in);
        assert_eq!(advice.evidence, evidence, "{advice}");
        assert_eq!(advice.is_thin, evidence < 10 * one_in, "{advice}");
    }
}

#[test]
fn advice_is_one_line() {
    assert_eq!(
        advise(&calls(90, 10), 10).to_string(),
        "`quote`: 10 of 100 calls cut (limit 500ms); 90.1ms would cut 1 in 10"
    );
    assert_eq!(
        advise(&calls(0, 3), 10).to_string(),
        "`quote`: 3 of 3 calls cut (limit 500ms); cutting 1 in 10 needs a longer limit; \
         thin evidence, needs 100 calls"
    );
    let names = calls(110, 1);
    record(&names, EventKind::Dropped, 30);
    assert_eq!(
        advise(&names, 10).to_string(),
        "`quote`: 1 of 111 calls cut (limit 500ms), 1 more given up; 101ms would cut 1 in 10"
    );
}

#[test]
fn each_name_has_its_own_calls() {
    let names = calls(2, 0);
    let advice = names.advise(NonZeroU64::MIN);
    assert_eq!(advice, BTreeMap::from([("quote", advise(&names, 1))]));
}

#[test]
fn a_latency_records_until_its_last_clone_is_dropped() {
    const NAME: &str = "latency::clones";

    let call = || {
        let policy = Timeout::new(NAME, Duration::from_secs(600)).expect("a limit");
        let result = policy.inline().call(|_| Ok::<_, TimeoutError>(7));
        result.expect("it is in time");
    };
    let latency = Latency::new();
    let (clone, names) = (latency.clone(), Arc::clone(&latency.names));
    call();
    drop(latency);
    call();
    assert_eq!(clone.advise(NonZeroU64::MIN)[NAME].calls, 2);
    drop(clone);
    call();
    assert_eq!(names.advise(NonZeroU64::MIN)[NAME].calls, 2);
}
