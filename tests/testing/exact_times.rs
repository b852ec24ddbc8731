//! Elapsed times are exact, the order of deadlines of one instant is fixed, and each run gives the
//! same result.

// Tests of this file fail if, for example,
// - time moves while a participant runs, or does not move when all of them wait;
// - the side that wakes a participant does not count it as running;
// - a call, a worker, a token or an event reads the real clock;
// - alarms of one instant ring at once, or in another order.

use crate::support::{Recorder, Way, is_late, record, rounds};
use crate::{new_clock, secs};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use timeout_runtime::{
    CancelToken, Deadline, EventKind, Timeout, TimeoutError, timeout, within_blocking, workers,
};

fn three_pauses(token: &CancelToken) -> Result<(), TimeoutError> {
    for _ in 0..3 {
        token.sleep(secs(7))?;
    }
    Ok(())
}

#[timeout(name = "exact::worker", secs = 20)]
fn on_worker() -> Result<(), TimeoutError> {
    three_pauses(&cancel_token)
}

#[timeout(name = "exact::inline", secs = 20, run = "inline")]
fn inline() -> Result<(), TimeoutError> {
    three_pauses(&cancel_token)
}

#[timeout(name = "exact::outer", secs = 20)]
fn outer() -> Result<(), TimeoutError> {
    let clock_of_nested = long();
    let error = clock_of_nested.as_ref().unwrap_err();
    assert!(error.is_deadline_exceeded());
    assert_eq!(error.elapsed(), secs(20));
    clock_of_nested
}

#[timeout(name = "exact::long", secs = 100)]
fn long() -> Result<(), TimeoutError> {
    assert_eq!(Deadline::current().remaining(), Some(secs(20)));
    three_pauses(&cancel_token)?;
    unreachable!("the deadline of the enclosing call has passed")
}

/// Ignores its token until `after` its cancellation.
#[timeout(name = "exact::graceful", secs = 10, grace = "5s")]
fn graceful(after: Duration) -> Result<Duration, TimeoutError> {
    let _ = cancel_token.wait_timeout(Duration::MAX);
    CancelToken::new().sleep(after)?;
    Ok(after)
}

#[test]
fn three_pauses_of_seven_seconds_end_at_a_limit_of_twenty() {
    let clock = new_clock();
    clock.run(|| {
        for (calls, call) in [on_worker, inline, outer].into_iter().enumerate() {
            let error = call().unwrap_err();
            assert!(error.is_timed_out());
            assert_eq!(error.elapsed(), secs(20));
            assert_eq!(clock.now(), secs(20 * (calls as u64 + 1)));
        }
    });
}

#[test]
fn grace_ends_at_its_own_instant() {
    let clock = new_clock();
    clock.run(|| {
        assert_eq!(graceful(secs(4)), Ok(secs(4)));
        assert_eq!(clock.now(), secs(14));
        assert_eq!(graceful(secs(6)).unwrap_err().elapsed(), secs(15));
        assert_eq!(clock.now(), secs(29));
        // The operation ends a second later.
        assert_eq!(workers::drain(secs(60)), 0);
        assert_eq!(clock.now(), secs(30));
    });
}

#[timeout(name = "exact::again", secs = 10, grace = "5s")]
fn again(after: Duration) -> Result<Duration, TimeoutError> {
    let _ = cancel_token.wait_timeout(Duration::MAX);
    CancelToken::new().sleep(after)?;
    Ok(after)
}

/// One run of everything: its times and events.
fn one_run(events: &Recorder) -> Vec<String> {
    let clock = new_clock();
    let first = events.events().len();
    clock.run(|| {
        assert!(outer().is_err());
        assert!(again(secs(3)).is_ok());
        assert!(again(secs(8)).is_err());
        assert_eq!(workers::drain(secs(60)), 0);
    });
    let events = events.events().split_off(first);
    let line = |event: &timeout_runtime::Event<'_>| {
        let timestamp = event.timestamp.duration_since(SystemTime::UNIX_EPOCH);
        format!("{:?} {:?} {timestamp:?}", event.kind, event.elapsed)
    };
    let lines = events.iter().map(line);
    lines.chain([format!("{:?}", clock.now())]).collect()
}

#[test]
fn all_runs_give_one_result() {
    let events = record("exact::again");
    let first = one_run(&events);
    // Two outcomes, a late event, and the time.
    assert_eq!(first.len(), 4);
    for _ in 1..rounds(500, 10_000) {
        assert_eq!(one_run(&events), first);
    }
}

/// A day of attempts: each has a limit, a grace and a nested call, with growing pauses in between.
#[test]
fn a_day_of_retries_takes_no_time() {
    let start = Instant::now();
    let clock = new_clock();
    let attempt = Timeout::new("exact::attempt", secs(30))
        .unwrap()
        .with_grace(secs(5));
    clock.run(|| {
        let (mut pause, mut attempts, mut expected) = (secs(1), 0, Duration::ZERO);
        while clock.now() < secs(24 * 3600) {
            let outcome: Result<(), TimeoutError> = attempt.call(|token| {
                let nested = within_blocking(secs(20), |token| token.sleep(secs(60)));
                assert_eq!(nested.unwrap_err().elapsed(), secs(20));
                let _ = token.wait_timeout(Duration::MAX);
                CancelToken::new().sleep(secs(2))?;
                token.check()
            });
            assert_eq!(outcome.unwrap_err().elapsed(), secs(32));
            CancelToken::new().sleep(pause).unwrap();
            expected += secs(32) + pause;
            assert_eq!(clock.now(), expected);
            pause = (2 * pause).min(secs(60));
            attempts += 1;
        }
        assert!(attempts > 900, "{attempts}");
    });
    // In real time, the pauses alone take hours.
    assert!(start.elapsed() < secs(600));
}

#[test]
fn a_result_at_the_deadline_comes_second_to_the_deadline() {
    let clock = new_clock();
    // The limit is set when the call starts, and thus before the pause of its operation.
    let at_the_limit = |token: CancelToken| token.sleep(secs(5));
    let policy = Timeout::new("exact::tie", secs(5)).unwrap();
    clock.run(|| {
        for way in [Way::SyncWorker, Way::SyncInline] {
            let outcome = way.run(&policy, at_the_limit);
            assert!(
                outcome
                    .timeout_error()
                    .is_some_and(TimeoutError::is_timed_out),
                "{way:?}"
            );
        }
        let ignores = |_| CancelToken::new().sleep(secs(5));
        let kept = policy.clone().cancel_on_timeout(false);
        assert!(
            kept.outcome(ignores)
                .timeout_error()
                .is_some_and(TimeoutError::is_timed_out)
        );
    });
}

#[test]
fn deadlines_of_one_instant_pass_in_the_order_in_which_they_were_set() {
    for _ in 0..100 {
        let clock = new_clock();
        let passed = Arc::new(Mutex::new(Vec::new()));
        clock.run(|| {
            let threads: Vec<_> = (0..10)
                .map(|number| {
                    let passed = Arc::clone(&passed);
                    let thread = clock.spawn(move || {
                        CancelToken::new().sleep(secs(100 - number)).unwrap();
                        passed.lock().unwrap().push(number);
                    });
                    // Waits until the thread sleeps, and moves on a second.
                    clock.advance(secs(1));
                    thread
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(clock.now(), secs(100));
        });
        assert_eq!(*passed.lock().unwrap(), (0..10).collect::<Vec<_>>());
    }
}

#[test]
fn events_have_virtual_timestamps() {
    let events = record("exact::events");
    let clock = new_clock();
    let start = clock.system_time();
    let policy = Timeout::new("exact::events", secs(5)).unwrap();
    clock.run(|| {
        clock.advance(secs(2));
        let outcome: Result<(), TimeoutError> = policy.call(|token| {
            let _ = token.wait_timeout(Duration::MAX);
            CancelToken::new().sleep(secs(3))?;
            token.check()
        });
        assert!(outcome.is_err());
        assert_eq!(workers::drain(secs(60)), 0);
    });
    let events = events.events();
    let times = events.iter().map(|event| {
        let since = event.timestamp.duration_since(start).unwrap();
        (is_late(&event.kind), event.elapsed, since)
    });
    assert_eq!(
        times.collect::<Vec<_>>(),
        [(false, secs(5), secs(7)), (true, secs(8), secs(10))]
    );
    assert_eq!(events[0].kind, EventKind::TimedOut);
}

#[test]
fn a_token_tells_the_virtual_time_that_is_left() {
    let clock = new_clock();
    clock.run(|| {
        let left = within_blocking(secs(20), |token| {
            let before = token.remaining();
            token.sleep(secs(7)).unwrap();
            (
                before,
                token.remaining(),
                token.remaining_or(secs(9)),
                token.deadline(),
            )
        });
        let (before, after, bounded, deadline) = left.unwrap();
        assert_eq!(
            (before, after, bounded),
            (Some(secs(20)), Some(secs(13)), secs(9))
        );
        // It has only the deadline of its call, which has ended.
        assert!(!deadline.has_passed());
        clock.advance(secs(13));
        assert!(deadline.has_passed());
    });
}
