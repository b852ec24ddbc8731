//! The advice, from events made by hand.

use super::*;
use crate::event::{CallId, Failure};
use std::time::SystemTime;

const LIMIT: Duration = Duration::from_millis(500);

fn tell(latency: &Latency, kind: EventKind<'_>, millis: u64) {
    tell_after(latency, kind, Duration::from_millis(millis), Some(LIMIT));
}

fn tell_after(latency: &Latency, kind: EventKind<'_>, elapsed: Duration, limit: Option<Duration>) {
    latency.take_in(&Event {
        timestamp: SystemTime::UNIX_EPOCH,
        call: CallId::fresh(),
        name: "quote",
        worker: None,
        elapsed,
        limit,
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
        let exact = Duration::from_millis(length);
        tell_after(&latency, EventKind::Succeeded, exact, None);
        let limit = advise(&latency, 10).limit.expect("a limit");
        assert!((exact..=exact + exact / 1000).contains(&limit), "{limit:?}");
    }
    let latency = Latency::new();
    tell_after(
        &latency,
        EventKind::Succeeded,
        Duration::from_nanos(1001),
        None,
    );
    assert_eq!(advise(&latency, 10).limit, micros(2));
}

#[test]
fn calls_that_were_cut_lie_beyond_their_limit() {
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
fn failures_count_as_calls_that_ended() {
    let latency = calls(1, 0);
    tell(&latency, EventKind::Failed(Failure::Error("no".into())), 7);
    let advice = advise(&latency, 100);
    assert_eq!((advice.calls, advice.cut, advice.given_up), (2, 0, 0));
    assert_eq!(advice.limit, micros(7_003));
}

#[test]
fn what_did_not_start_or_ended_after_its_call_does_not_count() {
    let latency = calls(1, 0);
    for kind in [
        EventKind::NotStarted(crate::error::Cause::NoWorker),
        EventKind::AbandonedWorkerSucceeded,
        EventKind::AbandonedWorkerFailed(Failure::Error("no".into())),
    ] {
        tell(&latency, kind, 400);
    }
    assert_eq!(advise(&latency, 100), advise(&calls(1, 0), 100));
}

#[test]
fn calls_that_were_given_up_took_at_least_so_long() {
    for kind in [
        EventKind::DeadlineExceeded,
        EventKind::Cancelled,
        EventKind::Dropped,
    ] {
        // Of 100 calls, the ten that take longer are given up after 50 ms.
        let latency = Latency::new();
        for _ in 0..90 {
            tell(&latency, EventKind::Succeeded, 1);
        }
        for _ in 0..10 {
            tell(&latency, kind.clone(), 50);
        }
        let ten = advise(&latency, 10);
        assert_eq!((ten.calls, ten.cut, ten.given_up), (90, 0, 10));
        assert_eq!(ten.limit, micros(1_000));
        assert_eq!(advise(&latency, 11).limit, None);
    }
}

#[test]
fn calls_that_were_given_up_early_say_nothing_of_later_times() {
    // Of 100 calls whose callers wait, 90 take 10 ms and ten take 300 ms; a hundred others were given up after 5 ms.
    let latency = Latency::new();
    for _ in 0..100 {
        tell(&latency, EventKind::Cancelled, 5);
    }
    for length in [10; 90].into_iter().chain([300; 10]) {
        tell(&latency, EventKind::Succeeded, length);
    }
    assert_eq!(advise(&latency, 10).limit, micros(10_007));
    assert_eq!(advise(&latency, 11).limit, micros(300_031));
}

#[test]
fn what_a_shorter_limit_has_cut_is_reckoned_from_what_a_longer_one_has_not() {
    // Half of the calls that are longer than 40 ms end by 100 ms, the others by 200 ms.
    let latency = Latency::new();
    for (length, count) in [(1, 90), (100, 5), (200, 5)] {
        for _ in 0..count {
            tell(&latency, EventKind::Succeeded, length);
            let kind = if length > 40 {
                EventKind::TimedOut
            } else {
                EventKind::Succeeded
            };
            tell(&latency, kind, length.min(40));
        }
    }
    let advice = advise(&latency, 20);
    assert_eq!((advice.calls, advice.cut), (200, 10));
    assert_eq!(advice.limit, micros(100_031));
    assert_eq!(advise(&latency, 10).limit, micros(1_000));
    assert_eq!(advise(&latency, 21).limit, micros(200_063));
}

#[test]
fn what_takes_more_than_a_year_takes_a_year() {
    let latency = Latency::new();
    tell_after(&latency, EventKind::Succeeded, Duration::MAX, None);
    let year = Duration::from_micros(LONGEST);
    let limit = advise(&latency, 1).limit.expect("a limit");
    assert!((year..year + year / 1000).contains(&limit), "{limit:?}");
}

/// Guards against counts of times that lie beyond the last call that ended by itself.
#[test]
fn calls_that_were_given_up_after_all_others_had_ended_leave_the_limit_open() {
    let latency = Latency::new();
    let last = Duration::from_micros(2047);
    tell_after(&latency, EventKind::Succeeded, last, None);
    for millis in [5, 6, 7] {
        tell(&latency, EventKind::Cancelled, millis);
        assert_eq!(advise(&latency, 10).limit, None);
    }
    assert_eq!(advise(&latency, 1).limit, micros(2047));
}

/// Within what time all but one in so many calls end, factor by factor.
fn reckoned(calls: &[(u64, bool)], one_in: u64) -> Option<u64> {
    let count = |is: &dyn Fn(u64, bool) -> bool| {
        let count = calls.iter().filter(|(time, ended)| is(*time, *ended));
        u32::try_from(count.count()).map(f64::from).expect("few")
    };
    let mut times: Vec<_> = calls.iter().map(|(time, _)| *time).collect();
    times.sort_unstable();
    times.dedup();
    let mut beyond = 1.0;
    times.into_iter().find(|&now| {
        let running = count(&|time, _| time >= now);
        beyond *= 1.0 - count(&|time, ended| time == now && ended) / running;
        let one_in = u32::try_from(one_in).expect("a small number");
        beyond * f64::from(one_in) <= 1.0 + 1e-9
    })
}

#[test]
fn the_limit_is_what_is_reckoned_factor_by_factor() {
    for seed in 0..2000 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let (longest, most) = (chance.u64(1..2048), chance.u64(1..40));
        let calls = (0..most).map(|_| match chance.u8(..3) {
            // Up to there microseconds are told apart.
            0 | 1 => (chance.u64(..=longest), true),
            _ => (chance.u64(..=2 * longest), false),
        });
        let calls: Vec<_> = calls.collect();
        let latency = Latency::new();
        for &(time, ended) in &calls {
            let kind = if ended {
                EventKind::Succeeded
            } else {
                EventKind::Cancelled
            };
            tell_after(&latency, kind, Duration::from_micros(time), None);
        }
        for one_in in [1, 2, 3, 10, 50] {
            let expected = reckoned(&calls, one_in).and_then(micros);
            let limit = advise(&latency, one_in).limit;
            assert_eq!(limit, expected, "{seed}: {calls:?}, 1 in {one_in}");
        }
    }
}

/// Guards against products of fractions that come out somewhat too large.
#[test]
fn a_share_that_is_met_exactly_is_met() {
    let latency = Latency::new();
    for (kind, millis, count) in [
        (EventKind::Succeeded, 1, 12),
        (EventKind::Cancelled, 1, 2),
        (EventKind::Succeeded, 2, 3),
        (EventKind::Cancelled, 2, 3),
    ] {
        for _ in 0..count {
            tell(&latency, kind.clone(), millis);
        }
    }
    // Eight of twenty after the first, and half of these after the second.
    assert_eq!(advise(&latency, 5).limit, micros(2_000));
}

#[test]
fn an_answer_in_grace_is_a_call_that_its_limit_would_have_cut() {
    let latency = calls(9, 0);
    tell(&latency, EventKind::Succeeded, 700);
    let advice = advise(&latency, 20);
    assert_eq!((advice.calls, advice.cut, advice.limit), (10, 1, None));
    assert_eq!(advise(&latency, 10).limit, micros(9_007));
}

#[test]
fn what_is_cut_late_is_known_to_take_longer_than_its_limit_and_no_more() {
    let latency = calls(9, 0);
    // It ran inline, and did not look at its token for two seconds.
    tell(&latency, EventKind::TimedOut, 2_000);
    let second = Duration::from_secs(1);
    for _ in 0..10 {
        tell_after(&latency, EventKind::Succeeded, second, None);
    }
    // Nobody knows that it takes longer than a second, too: one in twenty would.
    let limit = advise(&latency, 21).limit;
    assert_eq!(limit, micros(1_000_447));
}

#[test]
fn evidence_is_thin_while_it_stands_for_fewer_than_ten_calls_beyond() {
    for (calls, one_in, is_thin) in [(99, 10, true), (100, 10, false), (100, 11, true)] {
        let advice = advise(&self::calls(calls, 0), one_in);
        assert_eq!(advice.is_thin(), is_thin, "{calls}, {one_in}");
        assert_eq!(advice.evidence, calls);
    }
    assert_eq!(advise(&calls(1, 0), 1000).calls_needed(), 10_000);
    assert_eq!(advise(&calls(1, 0), u64::MAX).calls_needed(), u64::MAX);
}

#[test]
fn calls_that_were_given_up_are_evidence_up_to_then() {
    // So many end after 1 ms, so many are given up after 5 ms, and so many end after 50 ms.
    for (soon, given_up, late, one_in, evidence) in [
        (995, 1000, 5, 100, 10),
        (90, 10, 0, 10, 100),
        (0, 10_000, 100, 10, 100),
    ] {
        let latency = Latency::new();
        for (kind, millis, count) in [
            (EventKind::Succeeded, 1, soon),
            (EventKind::Cancelled, 5, given_up),
            (EventKind::Succeeded, 50, late),
        ] {
            for _ in 0..count {
                tell(&latency, kind.clone(), millis);
            }
        }
        let advice = advise(&latency, one_in);
        assert_eq!(advice.evidence, evidence, "{advice}");
        assert_eq!(advice.is_thin(), evidence < 10 * one_in, "{advice}");
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
        "`quote`: 3 of 3 calls cut (limit 500ms); to cut 1 in 10 takes a longer one; thin evidence, wants 100 calls"
    );
    let latency = calls(110, 1);
    tell(&latency, EventKind::Dropped, 30);
    assert_eq!(
        advise(&latency, 10).to_string(),
        "`quote`: 1 of 111 calls cut (limit 500ms), 1 more given up; 101ms would cut 1 in 10"
    );
}

#[test]
fn names_are_kept_apart() {
    let latency = calls(2, 0);
    let one_in = NonZeroU64::MIN;
    assert_eq!(latency.advise("other", one_in), None);
    assert_eq!(latency.advise_all(one_in), [advise(&latency, 1)]);
}
