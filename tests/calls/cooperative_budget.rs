//! Limits hold for an operation that is always ready and uses up the cooperative budget of its
//! task.

use crate::{concurrent, support};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use concurrent::must_return;
use support::{SOON, record, short, short_limit};
use timeout_runtime::{CancelToken, Cause, EventKind, TimeoutError, timeout};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{LocalSet, consume_budget, yield_now};

/// How an operation consumes its budget.
#[derive(Clone, Copy, Debug)]
enum Spends {
    /// Sends to a channel with room and receives from it.
    Channel,
    /// Acquires a free permit.
    Permit,
    /// Consumes the budget directly.
    Itself,
    /// Yields to other tasks.
    Turn,
}

const EVERY_KIND: [Spends; 4] = [
    Spends::Channel,
    Spends::Permit,
    Spends::Itself,
    Spends::Turn,
];

/// Is ready at each poll and never returns.
async fn always_ready(spends: Spends) -> ! {
    let (sender, mut receiver) = mpsc::channel(1024);
    let permits = Semaphore::new(1);
    loop {
        match spends {
            Spends::Channel => {
                sender.send(()).await.ok();
                receiver.recv().await;
            }
            Spends::Permit => drop(permits.acquire().await.ok()),
            Spends::Itself => consume_budget().await,
            Spends::Turn => yield_now().await,
        }
    }
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[timeout(name = "cooperative_budget::alone", ms = short())]
async fn alone(spends: Spends) -> Result<(), TimeoutError> {
    always_ready(spends).await
}

/// The timer used to be polled only while the task had budget left.
#[test]
fn an_always_ready_operation_times_out_and_other_tasks_run() {
    for spends in EVERY_KIND {
        let (outcome, turns) = must_return(move || {
            let turns = Rc::new(Cell::new(0));
            let count = Rc::clone(&turns);
            let local = LocalSet::new();
            let outcome = local.block_on(&current_thread(), async move {
                tokio::task::spawn_local(async move {
                    loop {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        count.set(count.get() + 1);
                    }
                });
                alone(spends).await
            });
            drop(local);
            (outcome, turns.get())
        });
        let error = outcome.unwrap_err();
        assert_eq!(error.cause(), Cause::TimedOut, "{spends:?}");
        assert!(error.elapsed() >= short_limit(), "{spends:?}: {error}");
        assert!(error.elapsed() < SOON, "{spends:?}: {error}");
        assert!(turns > 1, "{spends:?}: another task had {turns} turns");
    }
}

#[timeout(name = "cooperative_budget::outermost", secs = 60)]
async fn outermost(spends: Spends) -> Result<(), TimeoutError> {
    middle(spends).await
}

#[timeout(name = "cooperative_budget::middle", secs = 30)]
async fn middle(spends: Spends) -> Result<(), TimeoutError> {
    innermost(spends).await
}

#[timeout(name = "cooperative_budget::innermost", ms = short())]
async fn innermost(spends: Spends) -> Result<(), TimeoutError> {
    always_ready(spends).await
}

/// Only the outermost of several nested calls used to check its limit.
#[test]
fn the_innermost_of_three_nested_calls_times_out() {
    let outer = record("cooperative_budget::outermost");
    for spends in EVERY_KIND {
        let error = must_return(move || current_thread().block_on(outermost(spends))).unwrap_err();
        assert_eq!(error.name(), "cooperative_budget::innermost", "{spends:?}");
        assert_eq!(error.cause(), Cause::TimedOut, "{spends:?}");
        assert!(error.elapsed() < SOON, "{spends:?}: {error}");
    }
    let kinds = outer.wait_for(EVERY_KIND.len());
    assert!(
        kinds
            .iter()
            .all(|kind| matches!(kind, EventKind::Failed(_))),
        "the enclosing calls must not time out: {kinds:?}"
    );
}

#[timeout(name = "cooperative_budget::short", ms = short())]
async fn short_call(spends: Spends) -> Result<(), TimeoutError> {
    middle_of_short(spends).await
}

#[timeout(name = "cooperative_budget::middle_of_short", secs = 30)]
async fn middle_of_short(spends: Spends) -> Result<(), TimeoutError> {
    long(spends).await
}

#[timeout(name = "cooperative_budget::long", secs = 60)]
async fn long(spends: Spends) -> Result<(), TimeoutError> {
    always_ready(spends).await
}

/// A nested call used to take an exhausted budget for time left.
#[test]
fn the_outermost_of_three_nested_calls_times_out() {
    let (middle, inner) = (
        record("cooperative_budget::middle_of_short"),
        record("cooperative_budget::long"),
    );
    for (count, spends) in EVERY_KIND.into_iter().enumerate() {
        let error = must_return(move || current_thread().block_on(short_call(spends))).unwrap_err();
        assert_eq!(error.name(), "cooperative_budget::short", "{spends:?}");
        assert_eq!(error.cause(), Cause::TimedOut, "{spends:?}");
        for recorder in [&middle, &inner] {
            let mut kinds = recorder.kinds();
            kinds.retain(|kind| !matches!(kind, EventKind::AbandonedWorkerStopped(_)));
            let expected = vec![EventKind::DeadlineExceeded; count + 1];
            assert_eq!(kinds, expected, "{spends:?}");
        }
    }
}

#[timeout(name = "cooperative_budget::beside", ms = short())]
async fn beside() -> Result<(), TimeoutError> {
    std::future::pending().await
}

/// An operation beside the call used to consume the whole budget before the call was polled.
#[test]
fn a_call_beside_an_always_ready_operation_times_out() {
    for spends in EVERY_KIND {
        let error = must_return(move || {
            current_thread().block_on(async {
                let mut spender = std::pin::pin!(always_ready(spends));
                let mut call = std::pin::pin!(beside());
                std::future::poll_fn(|context| {
                    assert!(spender.as_mut().poll(context).is_pending());
                    call.as_mut().poll(context)
                })
                .await
            })
        })
        .unwrap_err();
        assert_eq!(error.cause(), Cause::TimedOut, "{spends:?}");
    }
}

#[timeout(name = "cooperative_budget::as_task", ms = 100, run = "task")]
async fn as_task(spends: Spends, stopped: Arc<AtomicUsize>) -> Result<(), TimeoutError> {
    let ready = cancel_token.run_until_cancelled(always_ready(spends)).await;
    assert!(ready.is_none());
    stopped.fetch_add(1, Ordering::SeqCst);
    cancel_token.check()
}

/// A task that is always ready must starve neither its caller nor its token.
#[test]
fn an_always_ready_task_notices_its_cancellation() {
    let recorder = record("cooperative_budget::as_task");
    for (count, spends) in EVERY_KIND.into_iter().enumerate() {
        let stopped = Arc::<AtomicUsize>::default();
        let stops = Arc::clone(&stopped);
        let error = must_return(move || {
            let runtime = current_thread();
            let error = runtime.block_on(as_task(spends, stops)).unwrap_err();
            runtime.block_on(async {
                while Arc::strong_count(&stopped) > 1 {
                    yield_now().await;
                }
            });
            assert_eq!(stopped.load(Ordering::SeqCst), 1, "{spends:?}");
            error
        });
        assert_eq!(error.cause(), Cause::TimedOut, "{spends:?}");
        let kinds = recorder.wait_for(2 * count + 2);
        assert_eq!(kinds[2 * count], EventKind::TimedOut, "{spends:?}");
        assert!(
            matches!(kinds[2 * count + 1], EventKind::AbandonedWorkerStopped(_)),
            "{spends:?}: {kinds:?}"
        );
    }
}

/// Waiting for a token used to need budget.
#[test]
fn a_token_is_polled_without_budget() {
    for spends in EVERY_KIND {
        must_return(move || {
            current_thread().block_on(async {
                let token = CancelToken::new();
                let cancels = token.clone();
                tokio::spawn(async move { cancels.cancel() });
                let ready = token.run_until_cancelled(always_ready(spends)).await;
                assert!(ready.is_none(), "{spends:?}");
            });
        });
    }
}
