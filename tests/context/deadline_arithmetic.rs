//! Deadlines are never early and never overflow, on either clock and when they change clocks.

// Tests of this file fail if a deadline passes 1 ms early, if `has_passed` is false at the deadline
// itself, if a sum wraps, or if an instant in the past is lost. They fail if a change of clock
// halves or doubles the time left.

use crate::support;
use std::time::{Duration, Instant};

use proptest::prelude::{Just, ProptestConfig, Strategy, any};
use proptest::{prop_assert, prop_assert_eq, prop_oneof, proptest};
use support::{in_paused_time, limit};
use timeout_runtime::{CallContext, Deadline, TimeoutError};

const SECOND: u64 = 1_000_000_000;
const YEAR: Duration = Duration::from_secs(366 * 86_400);
/// Durations up to this one are kept to the nanosecond.
const NEAR: Duration = YEAR.saturating_mul(400);
/// Durations above this one never pass.
const FAR: Duration = YEAR.saturating_mul(600);

fn near() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(NEAR),
        (0..3 * SECOND).prop_map(Duration::from_nanos),
        (0..NEAR.as_secs(), 0..1_000_000_000_u32)
            .prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
    ]
}

fn duration() -> impl Strategy<Value = Duration> {
    let any = (any::<u64>(), 0..1_000_000_000_u32);
    prop_oneof![
        4 => near(),
        1 => any.prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
        1 => (0..SECOND).prop_map(|less| Duration::MAX.saturating_sub(Duration::from_nanos(less))),
        // Close to the largest number of nanoseconds in 64 bits.
        2 => (0..4 * SECOND).prop_map(|more| Duration::from_nanos(u64::MAX - 2 * SECOND) + Duration::from_nanos(more)),
        2 => (0..4 * SECOND).prop_map(|more| Duration::from_nanos(u64::MAX - (1 << 62) - 2 * SECOND + more)),
    ]
}

/// An instant `distance` before or after `now`, or `now` if the instant cannot be represented.
fn away(now: Instant, distance: Duration, is_past: bool) -> Instant {
    let moved = if is_past {
        now.checked_sub(distance)
    } else {
        now.checked_add(distance)
    };
    moved.unwrap_or(now)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Returns the duration less the time passed since. A duration that is too long never passes.
    #[test]
    fn a_deadline_after_a_duration_is_not_early(duration in duration()) {
        let before = Instant::now();
        let deadline = Deadline::after(duration);
        let left = deadline.remaining();
        let passed = before.elapsed();
        prop_assert!(left.is_none() || duration <= FAR);
        prop_assert!(left.is_some() || duration > NEAR);
        if let Some(left) = left {
            prop_assert!(left <= duration);
            prop_assert!(left + passed >= duration, "{passed:?} have passed, {left:?} are left");
        }
        let has_passed = deadline.has_passed();
        prop_assert!(!has_passed || before.elapsed() >= duration);
    }

    /// Deadlines at an instant, which may be in the past, are exact to the nanosecond.
    #[test]
    fn a_deadline_at_an_instant_is_not_early(distance in near(), is_past: bool) {
        let instant = away(Instant::now(), distance, is_past);
        let deadline = Deadline::at(instant);
        let before = Instant::now();
        let left = deadline.remaining().unwrap();
        let after = Instant::now();
        prop_assert!(left <= instant.saturating_duration_since(before));
        prop_assert!(left >= instant.saturating_duration_since(after));
        prop_assert!(!deadline.has_passed() || Instant::now() >= instant);
        prop_assert!(deadline.has_passed() || before < instant);
        prop_assert_eq!(Deadline::from(instant), deadline);
    }

    #[test]
    fn the_time_left_never_grows(distance in near(), is_past: bool) {
        let deadline = Deadline::at(away(Instant::now(), distance, is_past));
        let mut last = deadline.remaining();
        let mut has_passed = deadline.has_passed();
        for _ in 0..20 {
            let left = deadline.remaining();
            prop_assert!(left <= last);
            // A deadline that has passed stays passed.
            prop_assert!(deadline.has_passed() || !has_passed);
            (last, has_passed) = (left, deadline.has_passed());
            prop_assert!(!has_passed || deadline.remaining() == Some(Duration::ZERO));
        }
    }

    /// The minimum is one of the operands, in either order. `never` is later than every deadline.
    #[test]
    fn the_minimum_is_the_earlier_deadline(distances: [(u64, bool); 3]) {
        let now = Instant::now();
        let instants = distances.map(|(nanos, is_past)| away(now, Duration::from_nanos(nanos / 4), is_past));
        let [a, b, c] = instants.map(Deadline::at);
        prop_assert_eq!(a.min(b), Deadline::at(instants[0].min(instants[1])));
        prop_assert_eq!(a == b, instants[0] == instants[1]);
        prop_assert_eq!(a.min(b), b.min(a));
        prop_assert_eq!(a.min(b).min(c), a.min(b.min(c)));
        prop_assert_eq!(a.min(a), a);
        prop_assert_eq!(a.min(Deadline::never()), a);
        prop_assert_eq!(Deadline::never().min(a), a);
    }

    /// Paused time stands still, so the results are exact.
    #[test]
    fn paused_time_is_kept_exactly(first in duration(), second in near(), moved in 0..10 * SECOND, just: bool) {
        in_paused_time(async || {
            let (a, b) = (Deadline::after(first), Deadline::after(second));
            let earlier = a.min(b);
            prop_assert_eq!(earlier, b.min(a));
            prop_assert_eq!(earlier, if first < second { a } else { b });
            // Often advance exactly to the deadline.
            let moved = if just { second } else { Duration::from_nanos(moved) };
            let start = tokio::time::Instant::now();
            tokio::time::advance(moved).await;
            let moved = start.elapsed();
            for (deadline, after) in [(a, first), (b, second)].into_iter().filter(|(_, after)| *after <= NEAR) {
                prop_assert_eq!(deadline.remaining(), Some(after.saturating_sub(moved)));
                prop_assert_eq!(deadline.has_passed(), after <= moved);
            }
            Ok(())
        })?;
    }

    /// Of two deadlines on different clocks, the minimum is the one with less time left.
    #[test]
    fn the_minimum_of_deadlines_on_two_clocks_has_less_time_left(paused in near(), system in near()) {
        in_paused_time(async || {
            let before = Instant::now();
            let (a, b) = (Deadline::after(paused), Deadline::at(before + system));
            for earlier in [a.min(b), b.min(a)] {
                let left = earlier.remaining().unwrap();
                let passed = before.elapsed();
                prop_assert!(earlier == a || earlier == b);
                prop_assert!(left <= paused.min(system));
                prop_assert!(left + passed >= paused.min(system));
            }
            Ok(())
        })?;
    }

    /// A sync call converts the deadline from paused time to the system's clock.
    #[test]
    fn a_change_of_clock_keeps_the_time_left(left in near(), moved in 0..2 * SECOND) {
        in_paused_time(async || {
            let deadline = Deadline::after(left);
            tokio::time::advance(Duration::from_nanos(moved)).await;
            let left = deadline.remaining().unwrap();
            let before = Instant::now();
            let calls = limit("deadline_arithmetic::crossing", 1 << 50);
            let context = CallContext::detached().with_deadline(deadline);
            let inside = context.run(|| calls.inline().outcome(|token| {
                let there = token.remaining().unwrap();
                let back = CallContext::current().with_deadline(Deadline::after(FAR));
                Ok::<_, TimeoutError>((there, back.run(Deadline::current).remaining().unwrap()))
            }));
            let passed = before.elapsed();
            if let Some((there, back)) = inside.success() {
                prop_assert!(there <= left && back <= there);
                prop_assert!(back + passed >= left);
            } else {
                // The call was refused on entry, or the time has passed during the call.
                prop_assert!(passed >= left);
            }
            Ok(())
        })?;
    }
}
