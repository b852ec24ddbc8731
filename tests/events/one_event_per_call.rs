//! One ending for each call, told once, before its caller is back, and at most one late report after it.

use crate::{crowd, support};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use support::{SOON, eventually, limit, runtime};
use timeout_runtime::{
    CallId, CallStatus, Event, EventKind, Outcome, Timeout, TimeoutError, workers,
};

const THREADS: usize = 8;
const CALLS: usize = 10_000;
const LIMIT_MS: u64 = 2;

/// What was told of one call, by its own listener, and what the caller got.
struct Told {
    events: Arc<Mutex<Vec<Event<'static>>>>,
    status: CallStatus,
}

#[derive(Default)]
struct Tally {
    calls: Mutex<Vec<Told>>,
    answered: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
}

/// A body's nap: it ends from 1 ms before the limit to 1 ms after it.
fn nap(round: usize) -> Duration {
    Duration::from_micros(LIMIT_MS * 1000 - 1000 + 20 * (round as u64 % 100))
}

impl Tally {
    /// What a body of round `round` ends with: every third one fails.
    fn ending(&self, round: usize) -> impl FnOnce() -> Result<usize, TimeoutError> + use<> {
        let fails = round.is_multiple_of(3);
        let ran = Arc::clone(if fails { &self.failed } else { &self.answered });
        move || {
            ran.fetch_add(1, Ordering::SeqCst);
            if fails {
                let fired = timeout_runtime::CancelToken::new();
                fired.cancel();
                fired.check()?;
            }
            Ok(round)
        }
    }

    /// Makes a call with a listener of its own, and looks at what it was told the moment the call has returned.
    fn call(
        &self,
        round: usize,
        name: &'static str,
        call: impl FnOnce(&Timeout) -> Outcome<usize, TimeoutError>,
    ) {
        let events = Arc::<Mutex<Vec<Event<'static>>>>::default();
        let sink = Arc::clone(&events);
        let timeout = limit(name, LIMIT_MS)
            .with_listener(move |event| sink.lock().unwrap().push(event.clone().into_owned()));
        let outcome = call(&timeout);
        let status = outcome.status();
        {
            let events = events.lock().unwrap();
            let verdict = events
                .first()
                .expect("the verdict is told before the call returns");
            assert_eq!(status_of(verdict), Some(status), "{verdict} {outcome:?}");
        }
        if let Outcome::Success(answer) = outcome {
            assert_eq!(answer, round);
        }
        self.calls.lock().unwrap().push(Told { events, status });
    }

    fn late(&self, count: impl Fn(&EventKind<'_>) -> bool) -> usize {
        let calls = self.calls.lock().unwrap();
        let events = calls.iter().map(|told| told.events.lock().unwrap());
        events
            .map(|events| events.iter().filter(|event| count(&event.kind)).count())
            .sum()
    }

    /// After all calls: each has one verdict, at most one late report, and no body that ran to its end is forgotten.
    fn check(&self) {
        let answers = |kind: &EventKind<'_>| {
            matches!(
                kind,
                EventKind::Succeeded | EventKind::AbandonedWorkerSucceeded
            )
        };
        let failures = |kind: &EventKind<'_>| {
            matches!(
                kind,
                EventKind::Failed(_) | EventKind::AbandonedWorkerFailed(_)
            )
        };
        workers::drain(SOON);
        let answered = self.answered.load(Ordering::SeqCst);
        let failed = self.failed.load(Ordering::SeqCst);
        eventually("every answer is told", || self.late(answers) >= answered);
        eventually("every failure is told", || self.late(failures) >= failed);
        assert_eq!(self.late(answers), answered);
        assert_eq!(self.late(failures), failed);

        let calls = self.calls.lock().unwrap();
        let mut ids = HashSet::<CallId>::new();
        let mut statuses = HashSet::new();
        for told in calls.iter() {
            let events = told.events.lock().unwrap();
            assert!(ids.insert(events[0].call), "a call's id came twice");
            statuses.insert(told.status);
            check_sequence(&events);
        }
        assert_eq!(ids.len(), CALLS);
        for status in [CallStatus::Ok, CallStatus::Failed, CallStatus::TimedOut] {
            assert!(
                statuses.contains(&status),
                "the edge was never hit: {status}"
            );
        }
    }
}

/// One verdict, then at most one late report, and that only of a call that timed out.
fn check_sequence(events: &[Event<'static>]) {
    assert!(
        events.iter().all(|event| event.call == events[0].call),
        "{events:?}"
    );
    match events {
        [verdict] => assert!(verdict.kind.is_verdict(), "{events:?}"),
        [verdict, late] => {
            assert_eq!(verdict.kind, EventKind::TimedOut, "{events:?}");
            assert!(!late.kind.is_verdict(), "{events:?}");
        }
        _ => panic!("{events:?}"),
    }
}

fn status_of(event: &Event<'_>) -> Option<CallStatus> {
    Some(match event.kind {
        EventKind::Succeeded => CallStatus::Ok,
        EventKind::Failed(_) => CallStatus::Failed,
        EventKind::TimedOut => CallStatus::TimedOut,
        EventKind::NotStarted(_) => CallStatus::NotStarted,
        _ => return None,
    })
}

/// Guards against doubled events, and against success and timeout both told where they coincide, in sync calls.
#[test]
fn sync_calls_that_end_at_their_limit_are_told_once() {
    let tally = Tally::default();
    crowd::crowd(THREADS, CALLS, |round| {
        let ending = tally.ending(round);
        let body = move |_| {
            thread::sleep(nap(round));
            ending()
        };
        tally.call(round, "one_event_per_call::sync", |timeout| {
            if round.is_multiple_of(4) {
                timeout.outcome_inline(body)
            } else {
                timeout.outcome(body)
            }
        });
    });
    tally.check();
}

/// Guards against the same in async calls, polled in place, as tasks, and on workers.
#[test]
fn async_calls_that_end_at_their_limit_are_told_once() {
    let tally = Tally::default();
    let runtime = runtime();
    crowd::crowd(THREADS, CALLS, |round| {
        let ending = tally.ending(round);
        let body = move |_| async move {
            tokio::time::sleep(nap(round)).await;
            ending()
        };
        tally.call(round, "one_event_per_call::async", |timeout| {
            match round % 4 {
                0 => runtime.block_on(timeout.outcome_async_on_worker(body)),
                1 => runtime.block_on(timeout.outcome_async(body)),
                _ => runtime.block_on(timeout.outcome_task(body)),
            }
        });
    });
    // What is left of the tasks ends on its own.
    tally.check();
}
