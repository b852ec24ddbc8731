//! A caller returns at its deadline without running the wakers of other tasks that wait for its
//! token.

use crate::support;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use support::{Gate, Way, before_it_opens, limit, poll_once, runtime, short};
use timeout_runtime::{CancelToken, Outcome, TimeoutError};

/// A waker that blocks until its gate opens, like the waker of an executor with a full queue.
struct Blocks {
    entered: Gate,
    leave: Gate,
}

impl Wake for Blocks {
    fn wake(self: Arc<Self>) {
        self.entered.open();
        self.leave.wait();
    }
}

/// Registers a blocking waker with `token` and waits until the gate opens.
fn wait_with(token: &CancelToken, waker: Arc<Blocks>) {
    let leave = waker.leave.clone();
    let waker = waker.into();
    let mut cancelled = pin!(token.cancelled());
    let polled = cancelled.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    leave.wait();
}

/// The caller used to run the wakers itself, so a blocking waker delayed it.
#[test]
fn a_blocking_waker_does_not_delay_the_caller() {
    for way in [Way::SyncWorker, Way::AsyncTask, Way::AsyncWorker] {
        let (entered, leave) = (Gate::new(), Gate::new());
        let waker = Arc::new(Blocks {
            entered: entered.clone(),
            leave: leave.clone(),
        });
        let outcome: Outcome<(), TimeoutError> = before_it_opens(&leave, move || {
            way.run(
                &limit("callers_leave_first::waker", short()),
                move |token| {
                    wait_with(&token, waker);
                    Ok(())
                },
            )
        });
        assert!(
            matches!(outcome, Outcome::TimedOut(_)),
            "{way:?}: {outcome:?}"
        );
        entered.wait();
    }
}

/// Dropping the future of a call used to run the wakers on the dropping thread.
#[test]
fn a_blocking_waker_does_not_delay_the_drop_of_a_call() {
    let runtime = runtime();
    let _inside = runtime.enter();
    for way in [Way::AsyncTask, Way::AsyncWorker] {
        let (entered, leave, waits) = (Gate::new(), Gate::new(), Gate::new());
        let waker = Arc::new(Blocks {
            entered: entered.clone(),
            leave: leave.clone(),
        });
        let (held, is_waiting) = (leave.clone(), waits.clone());
        let mut call = way.start(&limit("callers_leave_first::drop", 60_000), move |token| {
            let waker = Waker::from(waker);
            let mut cancelled = Box::pin(token.cancelled_owned());
            async move {
                let polled = cancelled.as_mut().poll(&mut Context::from_waker(&waker));
                assert!(polled.is_pending());
                is_waiting.open();
                held.wait();
                Ok::<(), TimeoutError>(())
            }
        });
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
        waits.wait();
        before_it_opens(&leave, move || drop(call));
        entered.wait();
    }
}
