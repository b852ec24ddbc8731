//! Each call emits one outcome event before it returns, and at most one late event after it.

use crate::{concurrent, support};
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

/// Events of one call, received by its own listener, and the status that the caller got.
struct Record {
    events: Arc<Mutex<Vec<Event<'static>>>>,
    status: CallStatus,
}

#[derive(Default)]
struct Tally {
    calls: Mutex<Vec<Record>>,
    succeeded: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
}

/// How long an operation sleeps: from 1 ms less than the limit to 1 ms more.
fn nap(round: usize) -> Duration {
    Duration::from_micros(LIMIT_MS * 1000 - 1000 + 20 * (round as u64 % 100))
}

impl Tally {
    /// Returns the end of the operation of round `round`. Every third one fails.
    fn outcome(&self, round: usize) -> impl FnOnce() -> Result<usize, TimeoutError> + use<> {
        let fails = round.is_multiple_of(3);
        let ran = Arc::clone(if fails { &self.failed } else { &self.succeeded });
        move || {
            ran.fetch_add(1, Ordering::SeqCst);
            if fails {
                let cancelled = timeout_runtime::CancelToken::new();
                cancelled.cancel();
                cancelled.check()?;
            }
            Ok(round)
        }
    }

    /// Makes a call with a listener of its own and checks its events when the call returns.
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
            let outcome_event = events
                .first()
                .expect("the outcome event precedes the return");
            assert_eq!(
                outcome_event.kind.status(),
                Some(status),
                "{outcome_event} {outcome:?}"
            );
        }
        if let Outcome::Success(result) = outcome {
            assert_eq!(result, round);
        }
        self.calls.lock().unwrap().push(Record { events, status });
    }

    fn late(&self, count: impl Fn(&EventKind<'_>) -> bool) -> usize {
        let calls = self.calls.lock().unwrap();
        let events = calls.iter().map(|record| record.events.lock().unwrap());
        events
            .map(|events| events.iter().filter(|event| count(&event.kind)).count())
            .sum()
    }

    /// Checks that each call has one outcome and at most one late event, and each operation an
    /// event.
    fn check(&self) {
        let is_success = |kind: &EventKind<'_>| {
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
        let succeeded = self.succeeded.load(Ordering::SeqCst);
        let failed = self.failed.load(Ordering::SeqCst);
        eventually("every result has an event", || {
            self.late(is_success) >= succeeded
        });
        eventually("every failure has an event", || {
            self.late(failures) >= failed
        });
        assert_eq!(self.late(is_success), succeeded);
        assert_eq!(self.late(failures), failed);

        let calls = self.calls.lock().unwrap();
        let mut ids = HashSet::<CallId>::new();
        let mut statuses = HashSet::new();
        for record in calls.iter() {
            let events = record.events.lock().unwrap();
            assert!(ids.insert(events[0].call), "two calls have the same id");
            statuses.insert(record.status);
            check_sequence(&events);
        }
        assert_eq!(ids.len(), CALLS);
        for status in [CallStatus::Ok, CallStatus::Failed, CallStatus::TimedOut] {
            assert!(statuses.contains(&status), "no call ended with {status}");
        }
    }
}

/// Checks for one outcome event, and at most one late event, only for a call that timed out.
fn check_sequence(events: &[Event<'static>]) {
    assert!(
        events.iter().all(|event| event.call == events[0].call),
        "{events:?}"
    );
    match events {
        [outcome_event] => assert!(!support::is_late(&outcome_event.kind), "{events:?}"),
        [outcome_event, late] => {
            assert_eq!(outcome_event.kind, EventKind::TimedOut, "{events:?}");
            assert!(support::is_late(&late.kind), "{events:?}");
        }
        _ => panic!("{events:?}"),
    }
}

/// At the limit, an event could be emitted twice, or both as a success and as a timeout.
#[test]
fn sync_calls_that_end_at_their_limit_emit_one_outcome_event() {
    let tally = Tally::default();
    concurrent::run_concurrently(THREADS, CALLS, |round| {
        let outcome = tally.outcome(round);
        let body = move |_| {
            thread::sleep(nap(round));
            outcome()
        };
        tally.call(round, "one_event_per_call::sync", |timeout| {
            if round.is_multiple_of(4) {
                timeout.inline().outcome(body)
            } else {
                timeout.outcome(body)
            }
        });
    });
    tally.check();
}

/// The same for async calls: inline, as tasks and on workers.
#[test]
fn async_calls_that_end_at_their_limit_emit_one_outcome_event() {
    let tally = Tally::default();
    let runtime = runtime();
    concurrent::run_concurrently(THREADS, CALLS, |round| {
        let outcome = tally.outcome(round);
        let body = move |_| async move {
            tokio::time::sleep(nap(round)).await;
            outcome()
        };
        tally.call(round, "one_event_per_call::async", |timeout| {
            match round % 4 {
                0 => runtime.block_on(timeout.on_worker().outcome_async(body)),
                1 => runtime.block_on(timeout.outcome_async(body)),
                _ => runtime.block_on(timeout.as_task().outcome_async(body)),
            }
        });
    });
    // The remaining tasks end by themselves.
    tally.check();
}
