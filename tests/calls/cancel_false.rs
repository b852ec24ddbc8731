//! With `cancel = false`, the limit ends the call and does not cancel the operation's token.

use crate::support;
use std::sync::mpsc;
use std::time::Duration;

use support::{
    ABANDONING, EVERY_WAY, Gate, LONG, SOON, Way, assert_timed_out, in_runtime, limit, past_short,
    poll_once, record, short, until_cancelled,
};
use timeout_runtime::{
    CancelToken, Cause, Deadline, EventKind, Outcome, Timeout, TimeoutError, timeout,
};

fn uncancelled(name: &'static str, ms: u64) -> Timeout {
    limit(name, ms).cancel_on_timeout(false)
}

/// State that the operation reads after its call has ended.
struct Found {
    cause: Option<Cause>,
    deadlines: [Deadline; 2],
    nested: Outcome<u32, TimeoutError>,
}

#[test]
fn the_limit_cancels_no_token_and_does_not_bound_nested_calls() {
    for way in ABANDONING {
        for inner_way in EVERY_WAY {
            let recorder = record("cancel_false::runs_on");
            let (gate, (sender, found)) = (Gate::new(), mpsc::channel());
            let held = gate.clone();
            let outcome = way.run(
                &uncancelled("cancel_false::runs_on", short()),
                move |token| {
                    held.wait();
                    let nested = inner_way.run(&limit("cancel_false::inside", LONG), |token| {
                        token.check().map(|()| 7)
                    });
                    sender
                        .send(Found {
                            cause: token.cause(),
                            deadlines: [token.deadline(), Deadline::current()],
                            nested,
                        })
                        .unwrap();
                    Ok::<_, TimeoutError>(())
                },
            );
            assert_timed_out(way, &outcome);
            gate.open();
            let found = found.recv_timeout(SOON).unwrap();
            assert_eq!(found.cause, None, "{way:?}");
            assert_eq!(found.deadlines, [Deadline::never(); 2], "{way:?}");
            assert!(
                matches!(found.nested, Outcome::Success(7)),
                "{inner_way:?} in {way:?}: {:?}",
                found.nested
            );
            assert_eq!(
                recorder.wait_for(2),
                [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
                "{way:?}"
            );
        }
    }
}

#[test]
fn the_limit_of_an_inline_call_cancels_no_token() {
    let outcome = Way::SyncInline.run(&uncancelled("cancel_false::inline", short()), |token| {
        std::thread::sleep(past_short());
        assert_eq!(token.cause(), None);
        Ok::<_, TimeoutError>(7)
    });
    assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
}

#[test]
fn a_clone_of_the_token_still_cancels_the_call() {
    for way in EVERY_WAY {
        let outcome = way.run(&uncancelled("cancel_false::held", LONG), |token| {
            let holder = token.clone();
            let canceller = std::thread::spawn(move || holder.cancel());
            let stopped = until_cancelled(&token);
            canceller.join().unwrap();
            stopped
        });
        assert!(
            matches!(outcome, Outcome::Cancelled(_)),
            "{way:?}: {outcome:?}"
        );
    }
}

#[test]
fn an_inherited_deadline_still_reaches_the_token() {
    for way in EVERY_WAY {
        let (sender, inside) = mpsc::channel();
        let outer = limit("cancel_false::outer", short());
        let outcome = Way::SyncWorker.run(&outer, move |_| {
            let inner = uncancelled("cancel_false::inner", LONG);
            let outcome = way.run(&inner, move |inner| {
                let bound = inner.deadline() != Deadline::never();
                let stopped = until_cancelled(&inner);
                sender.send((bound, inner.cause())).unwrap();
                stopped
            });
            Result::from(outcome)
        });
        assert_timed_out(way, &outcome);
        assert_eq!(
            inside.recv_timeout(SOON),
            Ok((true, Some(Cause::DeadlineExceeded))),
            "{way:?}"
        );
    }
}

#[timeout(name = "cancel_false::given", secs = 600, cancel = false)]
#[allow(clippy::needless_pass_by_value)] // A worker needs owned arguments.
fn given(cancel_token: CancelToken, running: Gate) -> Result<u32, TimeoutError> {
    running.open();
    until_cancelled(&cancel_token)
}

#[timeout(name = "cancel_false::given", secs = 600, cancel = false)]
async fn given_async(cancel_token: CancelToken, running: Gate) -> Result<u32, TimeoutError> {
    running.open();
    cancel_token.cancelled().await;
    cancel_token.check().map(|()| 7)
}

#[timeout(
    name = "cancel_false::given",
    secs = 600,
    cancel = false,
    run = "worker"
)]
async fn given_on_worker(cancel_token: CancelToken, running: Gate) -> Result<u32, TimeoutError> {
    running.open();
    until_cancelled(&cancel_token)
}

#[test]
fn an_upstream_token_still_reaches_the_operation() {
    for way in ABANDONING {
        let (request, running) = (CancelToken::new(), Gate::new());
        let caller = {
            let (request, running) = (request.clone(), running.clone());
            std::thread::spawn(move || match way {
                Way::SyncWorker => given(request, running),
                Way::AsyncTask => in_runtime(given_async(request, running)),
                _ => in_runtime(given_on_worker(request, running)),
            })
        };
        running.wait();
        request.cancel();
        let error = caller.join().unwrap().unwrap_err();
        assert!(error.is_cancelled(), "{way:?}: {error:?}");
    }
}

#[timeout(name = "cancel_false::task", ms = 50, cancel = false)]
async fn goes_on(done: mpsc::Sender<Option<Cause>>) -> Result<u32, TimeoutError> {
    tokio::time::sleep(Duration::from_secs(3600)).await;
    done.send(cancel_token.cause()).unwrap();
    Ok(7)
}

/// With `cancel = false`, an async function runs as a task: only a task outlives its caller.
#[tokio::test(start_paused = true)]
async fn an_async_operation_continues_as_a_task_after_the_limit() {
    let (done, cause) = mpsc::channel();
    let error = goes_on(done).await.unwrap_err();
    assert!(error.is_timed_out(), "{error:?}");
    tokio::time::sleep(Duration::from_secs(4000)).await;
    assert_eq!(cause.try_recv(), Ok(None));
}

/// With `cancel = false`, a cancellation after the limit used to be the cause if the caller was
/// polled only after both.
/// looked only then.
#[test]
fn a_cancellation_after_the_limit_is_not_the_cause() {
    let runtime = support::runtime();
    let _inside = runtime.enter();
    for way in ABANDONING.into_iter().filter(|way| *way != Way::SyncWorker) {
        let (request, running) = (CancelToken::new(), Gate::new());
        let started = running.clone();
        let timeout = uncancelled("cancel_false::late_cancel", short());
        let context = timeout_runtime::CallContext::detached().with_token(&request);
        let mut call = Box::pin(context.scope(way.start(&timeout, move |token| async move {
            started.open();
            token.cancelled().await;
            Err::<(), _>(token.check().unwrap_err())
        })));
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
        running.wait();
        // The caller's task is busy, and polls the call long after the limit.
        std::thread::sleep(past_short());
        request.cancel();
        let outcome = support::block_on(call);
        assert_timed_out(way, &outcome);
    }
}

/// A call that is dropped before its limit still cancels its token.
#[test]
fn a_dropped_call_cancels_its_token_despite_cancel_false() {
    let runtime = support::runtime();
    let _inside = runtime.enter();
    for way in [Way::AsyncTask, Way::AsyncWorker] {
        let (sender, cause) = mpsc::channel();
        let running = Gate::new();
        let started = running.clone();
        let timeout = uncancelled("cancel_false::dropped", LONG);
        let mut call = way.start(&timeout, |token| async move {
            started.open();
            token.cancelled().await;
            sender.send(token.cause()).unwrap();
            Ok::<_, TimeoutError>(())
        });
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
        running.wait();
        drop(call);
        assert_eq!(
            cause.recv_timeout(SOON),
            Ok(Some(Cause::Cancelled)),
            "{way:?}"
        );
    }
}
