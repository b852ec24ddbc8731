//! Inside a Tokio runtime with paused time, Tokio's time drives the clock, and both agree.

// Tests of this file fail if the clock moves by itself there, if Tokio's time moves while a worker
// runs, or if no timer of Tokio is set for a deadline on the clock.

use crate::support::{limit, paused_runtime};
use crate::{new_clock, secs};
use std::future::pending;
use std::time::Duration;

use timeout_runtime::testing::TestClock;
use timeout_runtime::{CancelToken, TimeoutError, within, workers};
use tokio::time::{Instant, sleep};

/// Runs `test` with both clocks, from their start on.
fn in_both(test: &impl AsyncFn(&TestClock, Instant)) {
    for _ in 0..50 {
        let clock = new_clock();
        paused_runtime().block_on(clock.scope(async { test(&clock, Instant::now()).await }));
    }
}

#[test]
fn timers_of_tokio_and_limits_follow_one_time() {
    in_both(&async |clock, start| {
        sleep(secs(3)).await;
        assert_eq!(clock.now(), secs(3));
        let error = within(secs(30), pending::<()>()).await.unwrap_err();
        assert_eq!(error.elapsed(), secs(30));
        assert_eq!((clock.now(), start.elapsed()), (secs(33), secs(33)));
        assert_eq!(within(secs(30), sleep(secs(29))).await, Ok(()));
        assert!(within(secs(30), sleep(secs(31))).await.is_err());
        assert_eq!((clock.now(), start.elapsed()), (secs(92), secs(92)));
        // Tokio's timers count in milliseconds.
        let short = Duration::from_micros(300);
        assert_eq!(
            within(short, pending::<()>()).await.unwrap_err().elapsed(),
            short
        );
    });
}

#[test]
fn a_worker_waits_in_the_time_of_both() {
    let policy = limit("paused::worker", 30_000).on_worker();
    in_both(&async |clock, start| {
        let pauses = async |token: CancelToken| {
            for _ in 0..3 {
                token.sleep(secs(7))?;
            }
            Ok::<_, TimeoutError>(())
        };
        assert_eq!(policy.call_async(pauses).await, Ok(()));
        assert_eq!((clock.now(), start.elapsed()), (secs(21), secs(21)));
        let longer = async |token: CancelToken| token.sleep(secs(31));
        let error = policy.call_async(longer).await.unwrap_err();
        assert_eq!(error.elapsed(), secs(30));
        assert_eq!((clock.now(), start.elapsed()), (secs(51), secs(51)));
    });
}

#[test]
fn tasks_on_the_clock_and_tasks_beside_it_wait_together() {
    let policy = limit("paused::task", 4000).as_task();
    in_both(&async |clock, start| {
        let slow = async |_: CancelToken| {
            sleep(secs(7)).await;
            Ok::<_, TimeoutError>(())
        };
        assert_eq!(
            policy.call_async(slow).await.unwrap_err().elapsed(),
            secs(4)
        );
        assert_eq!(workers::drain_async(secs(60)).await, 0);
        assert_eq!((clock.now(), start.elapsed()), (secs(7), secs(7)));
        let on_clock = tokio::spawn(clock.scope({
            let clock = clock.clone();
            async move {
                clock.sleep(secs(5)).await;
                clock.now()
            }
        }));
        let beside = tokio::spawn(async move {
            sleep(secs(4)).await;
            start.elapsed()
        });
        assert_eq!(beside.await.unwrap(), secs(11));
        assert_eq!(on_clock.await.unwrap(), secs(12));
        assert_eq!((clock.now(), start.elapsed()), (secs(12), secs(12)));
    });
}

#[test]
fn a_thread_of_the_clock_waits_for_tokios_time() {
    in_both(&async |clock, start| {
        let thread = clock.spawn({
            let clock = clock.clone();
            move || {
                let token = CancelToken::new();
                let mut times = Vec::new();
                for _ in 0..5 {
                    token.sleep(secs(2)).unwrap();
                    times.push(clock.now());
                }
                times
            }
        });
        sleep(secs(9)).await;
        assert!(!thread.is_finished());
        sleep(secs(2)).await;
        assert!(thread.is_finished());
        assert_eq!(start.elapsed(), secs(11));
        assert_eq!(thread.join().unwrap(), [2, 4, 6, 8, 10].map(secs));
    });
}
