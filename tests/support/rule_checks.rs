//! Checks the observations of a scenario against the model of the rules.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::time::Duration;

use proptest::prelude::{ProptestConfig, TestCaseError};
use proptest::{prop_assert, prop_assert_eq};
use timeout_runtime::{CallStatus, Cause, EventKind, Failure};

use super::observations::{ModelOutcome, Seen};
use super::rules::{NEVER, Played};
use super::scenario::{OpResult, Scenario};
use super::scenario_run::{Note, OVER, Reported, Sight};
use super::support;

/// Status that a call with this outcome returns.
fn status(outcome: ModelOutcome) -> Option<CallStatus> {
    Some(match outcome {
        ModelOutcome::Result(OpResult::Ok) => CallStatus::Ok,
        ModelOutcome::Result(_) => CallStatus::Failed,
        ModelOutcome::Stopped(Cause::TimedOut) => CallStatus::TimedOut,
        ModelOutcome::Stopped(Cause::DeadlineExceeded) => CallStatus::DeadlineExceeded,
        ModelOutcome::Stopped(_) => CallStatus::UpstreamCancelled,
        ModelOutcome::NotStarted(_) => CallStatus::NotStarted,
        ModelOutcome::Dropped => return None,
    })
}

pub type Check = Result<(), TestCaseError>;

/// Checks the start: at entry, with the limits that nested calls inherit.
fn check_start(played: &Played<'_>, depth: usize) -> Check {
    let seen = &played.seen[depth];
    if let Some((at, left)) = seen.started {
        prop_assert_eq!(Some(at), seen.entered, "the operation starts on entry");
        let inside = played.inside(depth);
        let expected = (inside != NEVER).then(|| inside - at);
        prop_assert_eq!(left, expected, "time left for nested calls");
        prop_assert!(
            played.ended_rightly(depth),
            "the operation ended in another way: {:?}",
            seen.ended
        );
    }
    let is_innermost = depth + 1 == played.seen.len();
    prop_assert!(
        is_innermost || played.called_rightly(depth),
        "the nested call"
    );
    Ok(())
}

/// Checks the outcome: its cause, its time, and what the call returns for it.
fn check_ending(played: &Played<'_>, depth: usize) -> Check {
    let (seen, allowed) = (&played.seen[depth], played.outcomes(depth));
    let Some((at, outcome)) = seen.outcome() else {
        return Err(TestCaseError::fail("each call has an outcome"));
    };
    prop_assert!(
        allowed.contains(&(at, outcome)),
        "{outcome:?} at {at}, not one of {allowed:?}"
    );
    let refused = matches!(outcome, ModelOutcome::NotStarted(_));
    prop_assert!(!refused || seen.started.is_none(), "a refused call started");

    let Some((returned_at, returned)) = seen.returned else {
        prop_assert_eq!(outcome, ModelOutcome::Dropped, "the call never returned");
        return Ok(());
    };
    prop_assert_eq!(
        returned_at,
        at,
        "the call returns when its outcome is decided"
    );
    prop_assert_eq!(Some(returned.status), status(outcome));
    prop_assert_eq!(
        returned.panicked,
        outcome == ModelOutcome::Result(OpResult::Panic)
    );
    let elapsed = at - seen.entered.unwrap_or(at);
    let error = match outcome {
        ModelOutcome::Stopped(cause) => Some((cause, true, elapsed)),
        ModelOutcome::NotStarted(cause) => Some((cause, false, elapsed)),
        _ => None,
    };
    prop_assert_eq!(returned.error, error);
    Ok(())
}

/// Checks the events: one for the outcome, at most one late event, and their contents.
fn check_events(played: &Played<'_>, depth: usize) -> Check {
    let seen = &played.seen[depth];
    let (Some((outcome_event, late)), Some((at, outcome))) =
        (seen.events.split_first(), seen.outcome())
    else {
        return Err(TestCaseError::fail("each call has an outcome"));
    };
    let one_number = late.iter().all(|(_, event)| event.id == outcome_event.1.id);
    prop_assert!(one_number, "all events of a call have its number");
    let late_events: Vec<_> = late
        .iter()
        .map(|(at, event)| (*at, result(event)))
        .collect();
    let expected = played.late(depth).map(|(at, result)| (at, Some(result)));
    prop_assert_eq!(late_events, Vec::from_iter(expected), "late events");
    let limit = played.scenario.calls[depth]
        .limit
        .map(Duration::from_millis);
    prop_assert!(seen.events.iter().all(|(_, event)| event.limit == limit));

    // For a result, also a late one, it is the operation's time; otherwise the time until the
    // return.
    let entered = seen.entered.unwrap_or(at);
    let ended = seen.ended.map_or(at, |(at, _)| at);
    let is_answer = matches!(outcome, ModelOutcome::Result(_));
    let elapsed = if is_answer { ended } else { at } - entered;
    prop_assert_eq!(outcome_event.1.elapsed, elapsed, "elapsed");
    let late = late.first().filter(|_| seen.ended.is_some());
    prop_assert!(late.is_none_or(|(_, event)| event.elapsed == ended - entered));
    if let Some((_, OpResult::Err)) = played.late(depth) {
        let late = &seen.events[1].1.kind;
        let has_stopped = matches!(late, EventKind::AbandonedWorkerStopped(_));
        prop_assert!(
            played
                .has_stopped(depth)
                .is_none_or(|expected| has_stopped == expected),
            "{late:?}"
        );
    }
    Ok(())
}

fn result(late: &Reported) -> Option<OpResult> {
    match &late.kind {
        EventKind::AbandonedWorkerSucceeded => Some(OpResult::Ok),
        EventKind::AbandonedWorkerFailed(Failure::Panic(_)) => Some(OpResult::Panic),
        EventKind::AbandonedWorkerStopped(_) | EventKind::AbandonedWorkerFailed(_) => {
            Some(OpResult::Err)
        }
        _ => None,
    }
}

/// Checks the causes that the call's token has over time.
fn check_token(played: &Played<'_>, depth: usize) -> Check {
    let seen = &played.seen[depth];
    // Shutting the runtime down cancels the remaining calls.
    let events = seen.events.iter().filter(|(at, _)| *at < OVER);
    let reads = events.map(|(at, event)| (*at, event.token));
    let at_last = (OVER, seen.reads);
    for (at, read) in reads.chain([at_last]).filter(|_| seen.started.is_some()) {
        let allowed = played.reads(depth, at);
        prop_assert!(
            allowed.contains(&read),
            "at {at} the token reads {read:?}, not one of {allowed:?}"
        );
    }
    if let (Some((_, ModelOutcome::Stopped(cause))), [(_, outcome_event), ..]) =
        (seen.outcome(), &seen.events[..])
        && played.scenario.calls[depth].cancel
    {
        prop_assert_eq!(
            outcome_event.token,
            Some(cause),
            "the token is cancelled before the event"
        );
    }
    Ok(())
}

/// Checks the order: outcome event, then return; end of the operation, then late event.
fn check_order(notes: &[Note], depth: usize) -> Check {
    let of_call: Vec<_> = notes.iter().filter(|note| note.depth == depth).collect();
    let place = |is: fn(&Sight) -> bool| of_call.iter().position(|note| is(&note.sight));
    let outcome_at =
        place(|sight| matches!(sight, Sight::Event(event) if !support::is_late(&event.kind)));
    let late = place(|sight| matches!(sight, Sight::Event(event) if support::is_late(&event.kind)));
    let returned = place(|sight| matches!(sight, Sight::Returned(_)));
    let ended = place(|sight| matches!(sight, Sight::Ended(_)));
    prop_assert!(returned.is_none_or(|returned| outcome_at < Some(returned)));
    prop_assert!(late.is_none_or(|late| outcome_at < Some(late) && ended < Some(late)));
    Ok(())
}

fn check_calls(played: &Played<'_>, notes: &[Note]) -> Check {
    let entered = |depth: &usize| played.seen[*depth].entered.is_some();
    for depth in (0..played.seen.len()).filter(entered) {
        check_start(played, depth)?;
        check_ending(played, depth)?;
        check_events(played, depth)?;
        check_token(played, depth)?;
        check_order(notes, depth)?;
    }
    Ok(())
}

/// Checks all calls of a scenario.
pub fn check(scenario: &Scenario, notes: &[Note]) -> Check {
    let seen = (0..scenario.calls.len()).map(|depth| Seen::of(notes, depth));
    let played = Played {
        scenario,
        seen: seen.collect(),
    };
    check_calls(&played, notes).map_err(|error| {
        let lines: Vec<_> = notes.iter().map(|note| format!("  {note:?}")).collect();
        TestCaseError::fail(format!("{error}\nafter this:\n{}", lines.join("\n")))
    })
}

/// So many cases, or more if the environment says so.
pub fn config(cases: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        cases: config.cases.max(cases),
        max_shrink_time: 60_000,
        failure_persistence: None,
        ..config
    }
}
