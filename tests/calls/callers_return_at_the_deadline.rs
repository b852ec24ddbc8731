//! A caller returns at its deadline without running the wakers of other tasks that wait for its
//! token.

use crate::support;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use support::{
    Gate, Way, assert_timed_out, before_it_opens, limit, poll_once, runtime, short, waker,
};
use timeout_runtime::{CancelToken, Outcome, TimeoutError};

/// A waker that opens a gate and blocks until another one opens, like the waker of an executor with
/// a full queue.
fn blocking_waker(entered: &Gate, release: &Gate) -> Waker {
    let (entered, release) = (entered.clone(), release.clone());
    waker(move || {
        entered.open();
        release.wait();
    })
}

/// Registers `waker` with `token` and waits until the gate opens.
fn wait_with(token: &CancelToken, waker: &Waker, release: &Gate) {
    let mut cancelled = pin!(token.cancelled());
    let polled = cancelled.as_mut().poll(&mut Context::from_waker(waker));
    assert!(polled.is_pending());
    release.wait();
}

/// The caller used to run the wakers itself, so a blocking waker delayed it.
#[test]
fn a_blocking_waker_does_not_delay_the_caller() {
    for way in [Way::SyncWorker, Way::AsyncTask, Way::AsyncWorker] {
        let (entered, release) = (Gate::new(), Gate::new());
        let (waker, held) = (blocking_waker(&entered, &release), release.clone());
        let outcome: Outcome<(), TimeoutError> = before_it_opens(&release, move || {
            way.run(
                &limit("callers_return_at_the_deadline::waker", short()),
                move |token| {
                    wait_with(&token, &waker, &held);
                    Ok(())
                },
            )
        });
        assert_timed_out(way, &outcome);
        entered.wait();
    }
}

/// Dropping the future of a call used to run the wakers on the dropping thread.
#[test]
fn a_blocking_waker_does_not_delay_the_drop_of_a_call() {
    let runtime = runtime();
    let _inside = runtime.enter();
    for way in [Way::AsyncTask, Way::AsyncWorker] {
        let (entered, release, waits) = (Gate::new(), Gate::new(), Gate::new());
        let waker = blocking_waker(&entered, &release);
        let (held, is_waiting) = (release.clone(), waits.clone());
        let mut call = way.start(
            &limit("callers_return_at_the_deadline::drop", 60_000),
            move |token| {
                let mut cancelled = Box::pin(token.cancelled_owned());
                async move {
                    let polled = cancelled.as_mut().poll(&mut Context::from_waker(&waker));
                    assert!(polled.is_pending());
                    is_waiting.open();
                    held.wait();
                    Ok::<(), TimeoutError>(())
                }
            },
        );
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
        waits.wait();
        before_it_opens(&release, move || drop(call));
        entered.wait();
    }
}
