//! Calls on smol: operations wait for its sockets and timers and keep their limits.

use crate::{concurrent, support};
use std::future::pending;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::net::TcpStream;
use smol::{Executor, Timer, block_on};
use support::{Gate, SOON, assert_timed_out, limit, until_cancelled};
use support::{short, short_limit};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, Outcome, TimeoutError, timeout,
};

type CallOutcome = Outcome<u8, TimeoutError>;

/// Runs `work` on an executor with two threads. `work` receives the executor.
fn on_two_threads<T, F>(work: impl FnOnce(Arc<Executor<'static>>) -> F) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let executor = Arc::new(Executor::new());
    let over = CancelToken::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| block_on(executor.run(over.cancelled())));
        }
        let _over = over.clone().drop_guard();
        block_on(executor.spawn(work(Arc::clone(&executor))))
    })
}

/// Asks a local peer for a byte. The peer sends one if `responds`, and keeps the connection open.
async fn ask(responds: bool) -> std::io::Result<u8> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut stream = TcpStream::connect(listener.local_addr()?).await?;
    let (peer, _) = listener.accept()?;
    if responds {
        std::io::Write::write_all(&mut &peer, &[7])?;
    }
    stream.write_all(b"?").await?;
    let mut byte = [0];
    stream.read_exact(&mut byte).await?;
    drop(peer);
    Ok(byte[0])
}

#[timeout(name = "on_smol::ask", ms = short())]
async fn limited_ask(responds: bool) -> std::io::Result<u8> {
    ask(responds).await
}

#[test]
fn an_operation_waits_for_sockets_of_smol_until_its_limit() {
    concurrent::must_return(|| {
        block_on(async {
            let begin = Instant::now();
            let silent = limited_ask(false).await.unwrap_err();
            assert_eq!(silent.kind(), std::io::ErrorKind::TimedOut);
            assert!(begin.elapsed() >= short_limit());
            let result = limit("on_smol::response", 60_000)
                .outcome_async(|_| ask(true))
                .await;
            assert!(matches!(result, Outcome::Success(7)), "{result:?}");
        });
    });
}

#[test]
fn all_limits_of_concurrent_calls_are_kept() {
    concurrent::must_return(|| {
        let outcomes = on_two_threads(|executor| async move {
            let calls = (0..100).map(|at| {
                executor.spawn(limit("on_smol::crowd", short()).outcome_async(
                    move |token| async move {
                        if at % 2 == 0 {
                            return pending().await;
                        }
                        token.cancelled().await;
                        Err(token.check().unwrap_err())
                    },
                ))
            });
            let mut outcomes: Vec<CallOutcome> = Vec::new();
            for call in calls.collect::<Vec<_>>() {
                outcomes.push(call.await);
            }
            outcomes
        });
        assert_eq!(outcomes.len(), 100);
        for outcome in &outcomes {
            assert_timed_out("concurrent", outcome);
        }
    });
}

#[test]
fn a_task_of_smol_is_woken_by_a_cancellation_from_another_thread() {
    concurrent::must_return(|| {
        let token = CancelToken::new();
        let waits = {
            let token = token.clone();
            smol::spawn(async move { token.run_until_cancelled(Timer::never()).await.is_none() })
        };
        let is_cancelled = {
            let token = token.clone();
            smol::spawn(async move { token.cancelled().await })
        };
        token.cancel();
        assert!(block_on(waits));
        block_on(is_cancelled);
    });
}

#[test]
fn a_call_in_a_task_of_smol_ends_at_the_deadline_of_its_context() {
    concurrent::must_return(|| {
        let begin = Instant::now();
        let context = CallContext::detached().with_deadline(Deadline::after(short_limit()));
        let outcome = block_on(smol::spawn(context.scope(async {
            limit("on_smol::inside", 60_000)
                .outcome_async(|_| pending::<Result<u8, TimeoutError>>())
                .await
        })));
        assert_eq!(outcome.status(), CallStatus::DeadlineExceeded);
        assert!(begin.elapsed() >= short_limit());
    });
}

#[test]
fn an_operation_on_a_worker_waits_for_timers_of_smol_and_may_block() {
    concurrent::must_return(|| {
        let release = Gate::new();
        let body = release.clone();
        block_on(async move {
            let result: CallOutcome = limit("on_smol::worker", 60_000)
                .on_worker()
                .outcome_async(|_| async {
                    Timer::after(Duration::from_millis(1)).await;
                    Ok(7)
                })
                .await;
            assert!(matches!(result, Outcome::Success(7)), "{result:?}");
            let blocks: CallOutcome = limit("on_smol::worker", short())
                .on_worker()
                .outcome_async(move |_| async move {
                    body.wait();
                    Ok(7)
                })
                .await;
            assert_timed_out("blocks", &blocks);
        });
        release.open();
    });
}

#[test]
fn a_sync_call_works_inside_a_task_of_smol() {
    concurrent::must_return(|| {
        let (result, stops) = on_two_threads(|_| async {
            let result = limit("on_smol::sync", 60_000).outcome(|_| Ok::<_, TimeoutError>(7));
            let stops = limit("on_smol::sync", short()).outcome(|token| until_cancelled(&token));
            (result, stops)
        });
        assert!(matches!(result, Outcome::Success(7)), "{result:?}");
        assert!(matches!(stops, Outcome::TimedOut(_)), "{stops:?}");
    });
}

#[timeout(name = "on_smol::task", limit = SOON, run = "task")]
async fn as_a_task(ran: Gate) -> Result<u8, TimeoutError> {
    ran.open();
    Ok(7)
}

#[test]
fn a_tokio_task_outside_tokio_is_not_started() {
    let ran = Gate::new();
    let error = block_on(smol::spawn(as_a_task(ran.clone()))).unwrap_err();
    assert_eq!(error.cause(), Cause::NoRuntime);
    assert_eq!(error.status(), CallStatus::NotStarted);
    assert!(!ran.is_open());
}
