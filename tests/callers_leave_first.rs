//! A caller leaves at its deadline without running wakers of other code that wait for its token.

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake};

use support::{Gate, Way, before_it_opens, limit, short};
use timeout_runtime::{CancelToken, Outcome, TimeoutError};

/// A waker that blocks until its gate opens, as one does whose run queue is full.
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

/// Registers a waker that blocks with `token`, and waits until the gate opens.
fn wait_with(token: &CancelToken, waker: Arc<Blocks>) {
    let leave = waker.leave.clone();
    let waker = waker.into();
    let mut cancelled = pin!(token.cancelled());
    let polled = cancelled.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    leave.wait();
}

/// The caller used to run the wakers itself, so that one that blocked held it.
#[test]
fn a_waker_that_blocks_does_not_hold_the_caller() {
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
