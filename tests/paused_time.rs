//! Paused Tokio time drives async calls that are polled in place, from their first poll on, and no sync call.

mod support;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use support::{SOON, limit};
use timeout_runtime::{CallContext, Deadline, Outcome, TimeoutError};

const LIMIT: u64 = 1000;

fn in_paused_time<T>(call: impl AsyncFnOnce() -> T) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(call())
}

/// Guards against a call that begins when its operation first waits: what was advanced by then was lost.
#[test]
fn time_that_passes_in_the_first_poll_counts() {
    in_paused_time(async || {
        let calls = limit("paused_time::first_poll", LIMIT);
        let outcome = calls
            .outcome_async(async |_| {
                tokio::time::advance(Duration::from_millis(2 * LIMIT)).await;
                Ok::<_, TimeoutError>(())
            })
            .await;
        assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
    });
}

/// Guards against a first poll that is judged by the system's clock.
#[test]
fn time_that_stands_still_does_not_pass_for_a_slow_first_poll() {
    in_paused_time(async || {
        let calls = limit("paused_time::slow", 1);
        let outcome = calls
            .outcome_async(async |_| {
                thread::sleep(Duration::from_millis(5));
                Ok::<_, TimeoutError>(Deadline::current().remaining())
            })
            .await;
        assert_eq!(outcome.success(), Some(Some(Duration::from_millis(1))));
    });
}

/// Guards against a token of a sync call that waits for time which nobody moves.
#[test]
fn a_sync_call_goes_by_the_system_s_clock() {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        in_paused_time(async || {
            let calls = limit("paused_time::sync", 20);
            let outcome = calls.outcome_inline(|token| {
                while !token.is_cancelled() {
                    thread::yield_now();
                }
                token.check()
            });
            sender
                .send(matches!(outcome, Outcome::TimedOut(_)))
                .unwrap();
        });
    });
    assert_eq!(ended.recv_timeout(SOON), Ok(true));
}

/// Paused time was taken for the system's where that had just caught up with it: a call then went by a clock that nobody moves.
#[test]
fn paused_time_is_known_for_what_it_is_while_the_system_s_overtakes_it() {
    const HOUR: Duration = Duration::from_secs(3600);
    in_paused_time(async || {
        for _ in 0..50 {
            let ahead = Instant::now() + Duration::from_micros(200);
            let paused = tokio::time::Instant::now().into_std();
            tokio::time::advance(ahead.saturating_duration_since(paused)).await;
            while Instant::now() < ahead + Duration::from_micros(10) {
                assert_eq!(Deadline::after(HOUR).remaining(), Some(HOUR));
            }
        }
    });
}

/// A future that went on after its context's deadline was polled again and again, and paused time, which moves when all wait, stood still.
#[test]
fn a_context_lets_what_ignores_its_deadline_wait() {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        in_paused_time(async || {
            let context = CallContext::detached().with_deadline(Deadline::after(SOON));
            context.scope(tokio::time::sleep(2 * SOON)).await;
            sender.send(context.deadline().has_passed()).unwrap();
        });
    });
    assert_eq!(ended.recv_timeout(SOON), Ok(true));
}
