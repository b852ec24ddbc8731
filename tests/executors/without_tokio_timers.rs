//! Calls need neither Tokio's timers nor Tokio.

use crate::{concurrent, support};
use std::future::pending;

use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use support::short;
use support::{Gate, assert_timed_out, limit, until_cancelled};
use timeout_runtime::{CallStatus, CancelToken, Cause, Outcome, TimeoutError};
use tokio::runtime::{Builder, Handle, Runtime};

type CallOutcome = Outcome<u8, TimeoutError>;

fn without_timers() -> [Runtime; 2] {
    [
        Builder::new_current_thread().build().unwrap(),
        Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap(),
    ]
}

/// Makes async calls that succeed and time out, on an executor without timers.
async fn succeed_and_time_out(name: &'static str) {
    let result: CallOutcome = limit(name, 60_000).outcome_async(|_| async { Ok(7) }).await;
    assert!(matches!(result, Outcome::Success(7)), "{result:?}");
    let never: CallOutcome = limit(name, short()).outcome_async(|_| pending()).await;
    assert_timed_out("never", &never);
    let stops: CallOutcome = limit(name, short())
        .outcome_async(|token| async move {
            token.cancelled().await;
            Err(token.check().unwrap_err())
        })
        .await;
    assert_timed_out("stops", &stops);
    let raced: CallOutcome = limit(name, short())
        .outcome_async(|token| async move {
            let ended: Option<()> = token.run_until_cancelled(pending()).await;
            assert_eq!(ended, None);
            Err(token.check().unwrap_err())
        })
        .await;
    assert_timed_out("raced", &raced);
    let on_worker: CallOutcome = limit(name, short())
        .on_worker()
        .outcome_async(|_| pending())
        .await;
    assert_timed_out("on_worker", &on_worker);
}

/// A timer used to need its runtime where the future is built and not where it is polled.
#[test]
fn a_future_built_outside_a_runtime_works_inside_one() {
    concurrent::must_return(|| {
        let result = limit("without_tokio_timers::outside", 60_000)
            .outcome_async(|_| async { Ok::<_, TimeoutError>(Handle::try_current().is_ok()) });
        let never = limit("without_tokio_timers::outside", short())
            .outcome_async(|_| pending::<Result<u8, TimeoutError>>());
        let task = limit("without_tokio_timers::outside", 60_000)
            .as_task()
            .outcome_async(|_| async { Ok::<_, TimeoutError>(8) });
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        assert!(matches!(runtime.block_on(result), Outcome::Success(true)));
        assert_timed_out("never", &runtime.block_on(never));
        assert!(matches!(runtime.block_on(task), Outcome::Success(8)));
    });
}

/// A call must neither panic nor hang in a runtime without a time driver.
#[test]
fn a_runtime_without_timers_keeps_every_limit() {
    concurrent::must_return(|| {
        for runtime in without_timers() {
            runtime.block_on(succeed_and_time_out("without_tokio_timers::no_driver"));
        }
    });
}

/// A task must not need the time driver of its runtime.
#[test]
fn a_task_on_a_runtime_without_timers_keeps_its_limit() {
    concurrent::must_return(|| {
        for runtime in without_timers() {
            let result: CallOutcome = runtime.block_on(
                limit("without_tokio_timers::task", 60_000)
                    .as_task()
                    .outcome_async(|_| async { Ok(7) }),
            );
            assert!(matches!(result, Outcome::Success(7)), "{result:?}");
            let never: CallOutcome = runtime.block_on(
                limit("without_tokio_timers::task", short())
                    .as_task()
                    .outcome_async(|_| pending()),
            );
            assert_timed_out("never", &never);
        }
    });
}

/// Calls must also work on executors other than Tokio.
#[test]
fn another_executor_keeps_every_limit() {
    concurrent::must_return(|| block_on(succeed_and_time_out("without_tokio_timers::futures")));
    concurrent::must_return(|| {
        let mut pool = LocalPool::new();
        for _ in 0..8 {
            let call = succeed_and_time_out("without_tokio_timers::pool");
            pool.spawner().spawn_local(call).unwrap();
        }
        pool.run();
    });
}

/// A task without a runtime used to panic with an obscure message.
#[test]
fn a_task_outside_a_runtime_is_an_error_that_names_the_reason() {
    let outcome: CallOutcome = concurrent::must_return(|| {
        block_on(
            limit("without_tokio_timers::no_runtime", short())
                .as_task()
                .outcome_async(|_| pending()),
        )
    });
    let Outcome::NotStarted(error) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.cause(), Cause::NoRuntime);
    assert_eq!(error.status(), CallStatus::NotStarted);
    let text = error.to_string();
    assert!(
        text.contains("without_tokio_timers::no_runtime") && text.contains("needs a Tokio runtime"),
        "{text}"
    );
}

/// A sync call must not use a runtime internally.
#[test]
fn sync_calls_need_no_runtime() {
    let result: CallOutcome = limit("without_tokio_timers::sync", 60_000).outcome(|_| {
        assert!(Handle::try_current().is_err());
        Ok(7)
    });
    assert!(matches!(result, Outcome::Success(7)), "{result:?}");
    let body = |token: CancelToken| until_cancelled(&token).map(|_| 7);
    let policy = limit("without_tokio_timers::sync", short());
    assert_timed_out("worker", &policy.outcome(body));
    assert_timed_out("inline", &policy.inline().outcome(body));
    let gate = Gate::new();
    let ignoring = gate.clone();
    let never = limit("without_tokio_timers::sync", short()).outcome(move |_| {
        ignoring.wait();
        Ok::<_, TimeoutError>(7)
    });
    gate.open();
    assert_timed_out("never", &never);
}
