//! Async calls in virtual time: on smol, on Tokio, and without a runtime.

// Tests of this file fail if a woken future does not count as running before it is polled, or if a
// task is not on the clock of its caller.

use crate::support::{self, limit, runtime};
use crate::{new_clock, secs};
use std::future::pending;

use timeout_runtime::testing::TestClock;
use timeout_runtime::{
    CallContext, CancelToken, TimeoutError, timeout, within, within_blocking, workers,
};

#[timeout(name = "executors::lookup", secs = 5)]
async fn lookup(clock: &TestClock, takes: u64) -> Result<u64, TimeoutError> {
    clock.sleep(secs(takes)).await;
    Ok(takes)
}

#[timeout(name = "executors::outer", secs = 20)]
async fn outer(clock: &TestClock) -> Result<u64, TimeoutError> {
    let mut sum = 0;
    for takes in [4, 3, 9, 4, 5] {
        sum += lookup(clock, takes).await.unwrap_or(0);
    }
    // A value that the poll at the limit returned would count.
    clock.sleep(secs(1)).await;
    Ok(sum)
}

/// What every executor runs.
async fn calls(clock: TestClock) {
    let start = clock.now();
    let error = within(secs(30), pending::<()>()).await.unwrap_err();
    assert_eq!(error.elapsed(), secs(30));
    // 4 + 3 + 5 (of 9) + 4, and then the limit passes during the last lookup.
    assert_eq!(outer(&clock).await.unwrap_err().elapsed(), secs(20));
    let (fast, slow) = futures::join!(lookup(&clock, 4), lookup(&clock, 6));
    assert_eq!(fast, Ok(4));
    assert_eq!(slow.unwrap_err().elapsed(), secs(5));
    let on_worker = limit("executors::worker", 3000).on_worker();
    let error = on_worker
        .call_async(async |token: CancelToken| token.sleep(secs(10)))
        .await;
    assert_eq!(error.unwrap_err().elapsed(), secs(3));
    assert_eq!(clock.now(), start + secs(30 + 20 + 5 + 3));
    assert_eq!(workers::drain_async(secs(60)).await, 0);
}

#[test]
fn virtual_time_needs_no_runtime() {
    for _ in 0..100 {
        let clock = new_clock();
        support::block_on(clock.scope(calls(clock.clone())));
        futures::executor::block_on(clock.scope(async {
            calls(clock.clone()).await;
            // A poll that blocks.
            let blocking = within_blocking(secs(2), |token| token.sleep(secs(10)));
            assert_eq!(blocking.unwrap_err().elapsed(), secs(2));
        }));
    }
}

#[test]
fn virtual_time_passes_on_smol() {
    for _ in 0..100 {
        let clock = new_clock();
        let task = smol::spawn(clock.scope(calls(clock.clone())));
        smol::block_on(clock.scope(calls(clock.clone())));
        smol::block_on(task);
    }
}

#[test]
fn virtual_time_passes_on_the_threads_of_tokio() {
    let runtime = runtime();
    for _ in 0..100 {
        let clock = new_clock();
        let tasks: Vec<_> = (0..4)
            .map(|_| runtime.spawn(clock.scope(calls(clock.clone()))))
            .collect();
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
    }
}

#[test]
fn tasks_are_on_the_clock_of_their_caller() {
    let runtime = runtime();
    let policy = limit("executors::task", 10_000).as_task();
    for _ in 0..100 {
        let clock = new_clock();
        runtime.block_on(clock.scope(async {
            let calls = (1..20).map(|takes| {
                let (clock, inside, policy) = (clock.clone(), clock.clone(), policy.clone());
                // A task of the test needs the context.
                tokio::spawn(CallContext::current().scope(async move {
                    let operation = async move |_: CancelToken| {
                        inside.sleep(secs(takes)).await;
                        Ok::<_, TimeoutError>(takes)
                    };
                    (policy.call_async(operation).await, clock.now())
                }))
            });
            let calls: Vec<_> = calls.collect();
            for (takes, call) in (1..).zip(calls) {
                let (result, ended) = call.await.unwrap();
                if takes < 10 {
                    assert_eq!((result, ended), (Ok(takes), secs(takes)));
                } else {
                    assert_eq!(result.unwrap_err().elapsed(), secs(10));
                    assert_eq!(ended, secs(10));
                }
            }
            assert_eq!(workers::drain_async(secs(60)).await, 0);
            assert_eq!(clock.now(), secs(19));
        }));
    }
}

#[test]
fn a_value_sent_by_another_task_arrives_at_its_instant() {
    let runtime = runtime();
    for _ in 0..100 {
        let clock = new_clock();
        runtime.block_on(clock.scope(async {
            let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
            let task = tokio::spawn(clock.scope({
                let clock = clock.clone();
                async move {
                    for _ in 0..10 {
                        clock.sleep(secs(3)).await;
                        sender.send(clock.now()).await.unwrap();
                    }
                }
            }));
            while let Ok(Some(sent)) = within(secs(20), receiver.recv()).await {
                assert_eq!(sent, clock.now());
            }
            task.await.unwrap();
            assert_eq!(clock.now(), secs(30));
        }));
    }
}
