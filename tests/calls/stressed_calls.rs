//! Thousands of calls on real threads end close to their limits and keep the rules in every race.
//!
//! A seed determines the calls and their times. A failed seed is printed with the command that runs
//! it again many times.

use crate::{calls_at_the_limit, concurrent, random_calls, support};
use std::collections::{HashMap, HashSet};
use std::env;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use calls_at_the_limit::Case;
use concurrent::{must_return, run_concurrently};
use random_calls::Scenario;
use timeout_runtime::{CallStatus, add_listener};

const AT_ONCE: usize = 4;
/// Number of runs of a seed from the environment variable.
const AGAIN: usize = 500;
/// No seed is started after this time, however few have run.
const ENOUGH: Duration = Duration::from_secs(30);

const VARIABLE: &str = "TIMEOUT_STRESS_SEED";
const COMMAND: &str = "cargo test -p timeout-tests --test calls stressed_calls";

/// Adds and removes listeners; each must receive an outcome at most once.
fn come_and_go(times: u64) {
    for _ in 0..times {
        let received = Arc::<Mutex<HashSet<_>>>::default();
        let (sink, twice) = (Arc::clone(&received), Arc::<AtomicBool>::default());
        let doubled = Arc::clone(&twice);
        let _listener = add_listener(move |event| {
            let is_news = sink
                .lock()
                .unwrap()
                .insert((event.call, !support::is_late(&event.kind)));
            doubled.fetch_or(!is_news, Ordering::SeqCst);
        });
        thread::sleep(Duration::from_micros(100));
        assert!(
            !twice.load(Ordering::SeqCst),
            "a listener received an outcome twice"
        );
    }
}

/// Returns the outcomes of the scenario's calls; `None` for a dropped call.
fn run(scenario: &Scenario) -> Vec<Option<CallStatus>> {
    let cases: Vec<_> = scenario.calls.iter().map(|call| Case::of(*call)).collect();
    let cancels = cases.iter().filter(|case| case.call.upstream.is_some());
    let cancels: Vec<_> = cancels.collect();
    let start = Barrier::new(cases.len() + cancels.len() + 1);
    thread::scope(|scope| {
        for case in &cases {
            scope.spawn(|| {
                start.wait();
                case.run();
            });
        }
        for case in cancels {
            scope.spawn(|| {
                start.wait();
                let at = Instant::now() + case.call.upstream.unwrap();
                while Instant::now() < at {
                    thread::yield_now();
                }
                case.cancelled.store(true, Ordering::SeqCst);
                case.upstream.cancel();
            });
        }
        start.wait();
        come_and_go(scenario.listeners);
    });
    let check = |case: &Arc<Case>| {
        case.check();
        case.status.get().copied()
    };
    cases.iter().map(check).collect()
}

/// Runs the scenario of `seed`. On failure, prints the command that repeats it.
fn try_seed(seed: u64) -> Vec<Option<CallStatus>> {
    let outcome = catch_unwind(|| must_return(move || run(&Scenario::of(seed))));
    outcome.unwrap_or_else(|panic| {
        let scenario = Scenario::of(seed);
        eprintln!(
            "seed {seed} failed; run it again with {VARIABLE}={seed} {COMMAND}\n{scenario:#?}"
        );
        resume_unwind(panic)
    })
}

// Fails if the operation does not read the clock at its end, or if the error has the time of the
// caller. Fails if the token is cancelled after the event, or if two late events are emitted.
#[test]
fn calls_that_end_close_to_their_limits_keep_the_rules() {
    if let Ok(seed) = env::var(VARIABLE) {
        let seed = seed.parse().expect("a seed is a number");
        return (0..AGAIN).for_each(|_| drop(try_seed(seed)));
    }
    let (start, seen) = (Instant::now(), Mutex::new(HashMap::new()));
    run_concurrently(AT_ONCE, support::rounds(2500, 20_000), |seed| {
        if start.elapsed() < ENOUGH {
            for outcome in try_seed(seed as u64) {
                *seen.lock().unwrap().entry(outcome).or_insert(0) += 1;
            }
        }
    });
    let seen = seen.into_inner().unwrap();
    println!("after {:?}: {seen:?}", start.elapsed());
    let outcomes = [
        CallStatus::Ok,
        CallStatus::Failed,
        CallStatus::TimedOut,
        CallStatus::DeadlineExceeded,
        CallStatus::UpstreamCancelled,
        CallStatus::NotStarted,
    ];
    for outcome in outcomes.map(Some).into_iter().chain([None]) {
        assert!(seen.contains_key(&outcome), "no call ended as {outcome:?}");
    }
}
