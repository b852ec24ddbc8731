//! Calls on several clocks inside each other, and contexts that pass a clock on.

// Tests of this file fail if a deadline of one clock is converted to another one by the time left,
// or if a cancellation does not pass from clock to clock.

use crate::support::{Gate, LONG};
use crate::{manual_clock, new_clock, secs};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use timeout_runtime::{
    CallContext, CancelToken, Cause, Deadline, Timeout, TimeoutError, timeout, within_blocking,
    workers,
};

#[test]
fn tests_beside_each_other_have_a_time_of_their_own() {
    let clocks: Vec<_> = (1..=20_u64).map(|number| (number, new_clock())).collect();
    let threads = clocks.iter().map(|(number, clock)| {
        let number = *number;
        let call = clock.spawn(move || {
            for _ in 0..50 {
                let error = within_blocking(secs(number), |token| token.sleep(secs(100)));
                assert_eq!(error.unwrap_err().elapsed(), secs(number));
            }
        });
        (number, clock, call)
    });
    for (number, clock, call) in threads.collect::<Vec<_>>() {
        call.join().unwrap();
        assert_eq!(clock.now(), secs(50 * number));
    }
}

#[timeout(name = "several::annotated_test", secs = LONG)]
fn an_annotated_test() -> Result<Duration, TimeoutError> {
    let clock = new_clock();
    // Far more than the limit of the enclosing call, which is on the real clock.
    clock.run(|| within_blocking(secs(1_000_000), |token| token.sleep(secs(900_000))))??;
    Ok(clock.now())
}

#[test]
fn a_real_limit_around_a_test_does_not_end_its_virtual_calls() {
    assert_eq!(an_annotated_test(), Ok(secs(900_000)));
}

#[test]
fn a_real_limit_around_a_test_cancels_its_virtual_calls() {
    let outside = Timeout::new("several::outside", Duration::from_millis(50)).unwrap();
    let clock = manual_clock();
    let cause = outside.outcome(move |_| {
        let inner = clock
            .run(|| within_blocking(secs(1_000_000), |token| token.wait_timeout(Duration::MAX)));
        Ok::<_, TimeoutError>(inner.unwrap_err().cause())
    });
    assert!(
        cause
            .timeout_error()
            .is_some_and(TimeoutError::is_timed_out)
    );
    assert_eq!(workers::drain(secs(60)), 0);
}

#[timeout(name = "several::real", limit = Duration::MAX, upstream = upstream)]
fn real(upstream: CancelToken, gate: Gate) -> Result<(), TimeoutError> {
    gate.open();
    cancel_token.sleep(Duration::MAX)
}

#[test]
fn a_virtual_limit_cancels_a_real_call_inside() {
    let clock = new_clock();
    let (sender, cause) = mpsc::channel();
    let error = clock.run(|| {
        within_blocking(secs(5), move |token| {
            let gate = Gate::new();
            // A thread without a context.
            let real = thread::spawn({
                let (token, gate) = (token.clone(), gate.clone());
                move || real(token, gate)
            });
            // Time stands until the real call runs.
            gate.wait();
            let _ = token.wait_timeout(Duration::MAX);
            sender
                .send(real.join().unwrap().unwrap_err().cause())
                .unwrap();
        })
    });
    assert_eq!(error.unwrap_err().elapsed(), secs(5));
    assert_eq!(cause.recv(), Ok(Cause::DeadlineExceeded));
}

#[timeout(name = "several::shared", secs = 60, deadline = deadline)]
fn until(deadline: Deadline) -> Result<(), TimeoutError> {
    cancel_token.sleep(secs(100))
}

#[test]
fn a_shared_deadline_passes_on_its_own_clock() {
    let outside = manual_clock();
    let shared = outside.run(|| Deadline::after(secs(10)));
    let clock = new_clock();
    clock.run(|| {
        assert!(until(shared).unwrap_err().is_timed_out());
        outside.advance(secs(10));
        let error = until(shared).unwrap_err();
        assert!(error.is_deadline_exceeded());
        assert_eq!(error.elapsed(), secs(0));
    });
}

#[test]
fn a_clock_stands_while_its_thread_runs_on_another_one() {
    let (outer, inner) = (new_clock(), new_clock());
    outer.run(|| {
        let beside = outer.spawn(|| CancelToken::new().sleep(secs(1)));
        let error = within_blocking(secs(7), {
            let (outer, inner) = (outer.clone(), inner.clone());
            move |token| {
                let error = inner.run(|| within_blocking(secs(50), |token| token.sleep(secs(60))));
                assert_eq!(error.unwrap_err().elapsed(), secs(50));
                assert_eq!(outer.now(), secs(0));
                token.sleep(secs(10))
            }
        });
        assert_eq!(error.unwrap_err().elapsed(), secs(7));
        beside.join().unwrap().unwrap();
    });
    assert_eq!((outer.now(), inner.now()), (secs(7), secs(50)));
}

#[test]
fn a_context_passes_the_clock_on_to_other_threads() {
    let clock = new_clock();
    let elapsed = clock.run(|| {
        within_blocking(secs(20), |token| {
            let context = CallContext::current();
            let gate = Gate::new();
            let (sender, elapsed) = mpsc::channel();
            let is_there = gate.clone();
            let helper = thread::spawn(move || {
                context.run(|| {
                    is_there.open();
                    let error = within_blocking(secs(10), |token| token.sleep(secs(15)));
                    sender.send(error.unwrap_err().elapsed()).unwrap();
                });
            });
            // Time stands until the other thread is on the clock.
            gate.wait();
            let elapsed = token.recv(&elapsed);
            helper.join().unwrap();
            elapsed
        })
    });
    assert_eq!(elapsed, Ok(Ok(Some(secs(10)))));
    assert_eq!(clock.now(), secs(10));
}
