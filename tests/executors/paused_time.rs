//! Paused Tokio time drives inline async calls from their first poll on, and no sync call.

// Tests of this file fail if a deadline in paused time is taken for one of the system, if the scope
// of a context wakes itself, or if nothing, or one blocking task of the runtime, holds paused time
// while an operation is on a worker.

use crate::support;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use support::{Gate, SOON, in_paused_time, limit, paused_runtime, poll_once, short};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Deadline, Outcome, TimeoutError, TimeoutFutureExt,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

const LIMIT: u64 = 1000;

/// A call used to start when its operation first waited, so time advanced before that was lost.
#[test]
fn time_that_passes_during_the_first_poll_counts() {
    in_paused_time(async || {
        let calls = limit("paused_time::first_poll", LIMIT);
        let outcome = calls
            .outcome_async(async |_| {
                tokio::time::advance(Duration::from_millis(2 * LIMIT)).await;
                Err::<(), _>("late")
            })
            .await;
        assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
    });
}

/// `tokio::time::Instant` used to need `into_std`, which gave a deadline on the system's clock.
#[test]
fn a_deadline_from_an_instant_of_tokio_follows_paused_time() {
    const MINUTE: Duration = Duration::from_secs(60);
    in_paused_time(async || {
        let soon = tokio::time::Instant::now() + MINUTE;
        for deadline in [Deadline::at(soon), Deadline::from(soon)] {
            assert_eq!(deadline.remaining(), Some(MINUTE));
        }
        let deadline = Deadline::at(soon);
        tokio::time::advance(MINUTE / 2).await;
        assert_eq!(deadline.remaining(), Some(MINUTE / 2));
        let error = pending::<()>().within_deadline(soon).await.unwrap_err();
        assert!(error.is_deadline_exceeded(), "{error}");
        assert!(deadline.has_passed());
    });
    let outside = tokio::time::Instant::now();
    assert_eq!(Deadline::at(outside), Deadline::at(outside.into_std()));
}

/// The first poll used to be timed by the system's clock.
#[test]
fn paused_time_does_not_pass_during_a_slow_first_poll() {
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

/// A sync call must not use paused time, which does not advance while the call blocks.
#[test]
fn a_sync_call_uses_the_systems_clock() {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        in_paused_time(async || {
            let calls = limit("paused_time::sync", 20);
            let outcome = calls.inline().outcome(|token| {
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

/// Paused time was taken for the system's when both were equal; its calls then never timed out.
#[test]
fn paused_time_is_detected_while_the_systems_time_overtakes_it() {
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

/// A future that ran past its context's deadline was polled in a loop, so paused time never
/// advanced.
#[test]
fn a_future_that_ignores_the_deadline_of_its_context_can_wait() {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        in_paused_time(async || {
            let context = CallContext::detached().with_deadline(Deadline::after(SOON));
            context.scope(sleep(2 * SOON)).await;
            sender
                .send(context.run(Deadline::current).has_passed())
                .unwrap();
        });
    });
    assert_eq!(ended.recv_timeout(SOON), Ok(true));
}

#[test]
fn a_deadline_keeps_its_time_left_in_a_sync_call() {
    in_paused_time(async || {
        let minute = Duration::from_secs(60);
        // Far enough from the system's clock that an instant of one clock is wrong on the other.
        tokio::time::advance(60 * minute).await;
        let deadline = Deadline::after(minute);
        let context = CallContext::current().with_deadline(deadline);
        let calls = limit("paused_time::crossing", 3_600_000);
        let left = || {
            calls
                .inline()
                .outcome(|token| Ok::<_, TimeoutError>(token.remaining()))
        };
        let outcome = context.run(left);
        assert!(
            matches!(outcome, Outcome::Success(Some(left)) if left <= minute && left > minute / 2),
            "{outcome:?}"
        );
        tokio::time::advance(minute).await;
        let outcome = context.run(left);
        assert!(matches!(outcome, Outcome::NotStarted(_)), "{outcome:?}");
        assert_eq!(Deadline::never().min(deadline), deadline);
    });
}

#[test]
fn a_token_of_an_unpolled_call_follows_paused_time() {
    in_paused_time(async || {
        let calls = limit("paused_time::unpolled", LIMIT);
        let (sender, tokens) = mpsc::channel();
        let mut call = pin!(calls.outcome_async(async move |token| {
            sender.send(token).unwrap();
            pending::<Result<(), TimeoutError>>().await
        }));
        poll_fn(|context| {
            assert!(call.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        let token = tokens.recv().unwrap();
        assert!(!token.is_cancelled());
        tokio::time::advance(Duration::from_millis(LIMIT)).await;
        assert!(
            token.is_cancelled(),
            "cancelled without another poll of the call"
        );
    });
}

#[test]
fn an_hour_of_paused_time_passes_immediately() {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        in_paused_time(async || {
            let calls = limit("paused_time::hour", 3_600_000).with_grace(Duration::from_secs(60));
            let never = async |_| pending::<Result<(), TimeoutError>>().await;
            let outcomes = [
                calls.outcome_async(never).await,
                calls.as_task().outcome_async(never).await,
            ];
            sender.send(outcomes).unwrap();
        });
    });
    for outcome in ended.recv_timeout(SOON).unwrap() {
        assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
    }
}

/// Time for which an operation on a worker waits for an event that must not happen.
const WHILE: Duration = Duration::from_millis(100);

const HOUR: Duration = Duration::from_secs(3600);

/// Runs `scenario` in paused time on a thread of its own. Panics if it does not end.
#[track_caller]
fn ends_in_paused_time<T: Send + 'static>(scenario: impl AsyncFnOnce() -> T + Send + 'static) -> T {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(in_paused_time(scenario)));
    ended.recv_timeout(SOON).expect("the scenario ends")
}

/// Makes a call whose operation waits on a worker until it is cancelled, or for a while.
async fn is_cancelled_on_worker() -> bool {
    let calls = limit("paused_time::worker", 60_000);
    let wait =
        async |token: CancelToken| Ok::<_, TimeoutError>(token.wait_timeout(WHILE).is_some());
    let outcome = calls.on_worker().outcome_async(wait).await;
    outcome.success().unwrap_or(true)
}

/// The limit used to pass immediately, since the runtime looked idle.
#[test]
fn paused_time_stands_still_while_an_operation_is_on_a_worker() {
    let is_cancelled = ends_in_paused_time(async || {
        let start = tokio::time::Instant::now();
        let calls = limit("paused_time::enclosing", 10_000);
        let call = async |_| Ok::<_, TimeoutError>(is_cancelled_on_worker().await);
        let outcome = calls.outcome_async(call).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        outcome.success()
    });
    assert_eq!(is_cancelled, Some(false));
}

/// A timer of the same runtime used to expire immediately.
#[test]
fn timers_of_the_runtime_wait_for_an_operation_on_a_worker() {
    let is_first = ends_in_paused_time(async || {
        tokio::select! {
            _ = is_cancelled_on_worker() => true,
            () = sleep(HOUR) => false,
        }
    });
    assert!(is_first);
}

#[test]
fn paused_time_passes_again_once_a_worker_call_has_its_outcome() {
    let gate = Gate::new();
    let stuck = gate.clone();
    ends_in_paused_time(async move || {
        let calls = limit("paused_time::abandoned", short());
        let waits = async move |_| {
            stuck.wait();
            Ok::<_, TimeoutError>(())
        };
        let outcome = calls.on_worker().outcome_async(waits).await;
        assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
        sleep(HOUR).await;
    });
    gate.open();
}

#[test]
fn paused_time_passes_again_once_a_worker_call_is_dropped() {
    let gate = Gate::new();
    let stuck = gate.clone();
    ends_in_paused_time(async move || {
        let calls = limit("paused_time::dropped", 60_000);
        let waits = async move |_| {
            stuck.wait();
            Ok::<_, TimeoutError>(())
        };
        let mut call = Box::pin(calls.on_worker().outcome_async(waits));
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
        drop(call);
        sleep(HOUR).await;
    });
    gate.open();
}

/// The grace used to pass before the callback had stopped the operation: the runtime looked idle.
#[test]
fn paused_time_stands_still_while_a_callback_runs() {
    let outcome = ends_in_paused_time(async || {
        let calls = limit("paused_time::callback", LIMIT).with_grace(HOUR);
        let stop = async |token: CancelToken| {
            let (sender, stopped) = tokio::sync::oneshot::channel();
            let _registration = token.on_cancel(move || {
                // While the callback runs, paused time would advance.
                thread::sleep(WHILE);
                sender.send(7).unwrap();
            });
            Ok::<_, TimeoutError>(stopped.await.unwrap())
        };
        calls.outcome_async(stop).await
    });
    assert!(matches!(outcome, Outcome::Success(7)), "{outcome:?}");
}

#[test]
fn paused_time_passes_again_once_a_callback_has_returned() {
    ends_in_paused_time(async || {
        let (token, called) = (CancelToken::new(), Gate::new());
        let calls = called.clone();
        let _registration = token.on_cancel(move || calls.open());
        token.cancel();
        sleep(HOUR).await;
        assert!(called.is_open());
    });
}

/// Starts a worker call in a paused runtime, shuts the runtime down, and awaits the call elsewhere.
fn outlives_its_runtime(shut_down: fn(Runtime)) -> bool {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        let runtime = paused_runtime();
        let gate = Gate::new();
        let opened = gate.clone();
        let calls = limit("paused_time::shut_down", 60_000);
        let waits = async move |_| {
            opened.wait();
            Ok::<_, TimeoutError>(())
        };
        let mut call = Box::pin(calls.on_worker().outcome_async(waits));
        {
            let _inside = runtime.enter();
            assert!(poll_once(&mut call, &Gate::new()).is_pending());
        }
        shut_down(runtime);
        gate.open();
        sender.send(support::block_on(call).status() == CallStatus::Ok)
    });
    ended.recv_timeout(SOON).expect("the call ends")
}

#[test]
fn a_runtime_is_dropped_while_a_call_waits_for_a_worker_in_paused_time() {
    assert!(outlives_its_runtime(drop));
}

#[test]
fn a_runtime_is_shut_down_in_the_background_while_a_call_waits_for_a_worker_in_paused_time() {
    assert!(outlives_its_runtime(Runtime::shutdown_background));
}

#[test]
fn a_runtime_is_dropped_with_a_task_that_waits_for_a_worker_in_paused_time() {
    let gate = Gate::new();
    let stuck = gate.clone();
    ends_in_paused_time(async move || {
        let started = Gate::new();
        let starts = started.clone();
        let calls = limit("paused_time::task", 60_000);
        let waits = async move |_| {
            starts.open();
            stuck.wait();
            Ok::<_, TimeoutError>(())
        };
        tokio::spawn(calls.on_worker().outcome_async(waits));
        tokio::task::yield_now().await;
        started.wait();
    });
    gate.open();
}

#[test]
fn one_blocking_thread_is_shared_with_an_operation_on_a_worker_in_paused_time() {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        let mut runtime = Builder::new_current_thread();
        runtime
            .enable_time()
            .start_paused(true)
            .max_blocking_threads(1);
        let runtime = runtime.build().unwrap();
        let outcome = runtime.block_on(async {
            let calls = limit("paused_time::one_thread", 60_000);
            let blocks =
                async |_| Ok::<_, TimeoutError>(tokio::task::spawn_blocking(|| 7).await.unwrap());
            calls.on_worker().outcome_async(blocks).await
        });
        sender.send(outcome.success())
    });
    assert_eq!(ended.recv_timeout(SOON), Ok(Some(7)));
}
