//! The annotated functions of a scenario and the behaviour of their operations.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::any::Any;
use std::future::{pending, poll_fn};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::FutureExt;
use timeout_runtime::{CallStatus, CancelToken, Deadline, timeout};
use tokio::time::{Sleep, sleep};

use super::call_error::CallError;
use super::scenario::{Call, Millis, OpResult, Run, Scenario};
use super::scenario_run::{OVER, Returned, Sight, keep, millis, named, note};

/// The state that is set up before the outermost call is made.
pub struct Props {
    scenario: Scenario,
    upstream: Vec<Option<CancelToken>>,
    deadlines: Vec<Deadline>,
    /// Tokio's timers for one instant expire in the order of their creation. These ones are created
    /// before the timers of all calls.
    ends: Vec<Mutex<Pin<Box<Sleep>>>>,
}

impl Props {
    pub fn of(scenario: &Scenario) -> Arc<Self> {
        let upstream = scenario.calls.iter().map(|call| {
            let token = call.upstream.map(|at| (at, CancelToken::new()));
            token.map(|(at, token)| {
                cancel_after(at, token.clone());
                token
            })
        });
        let deadlines = scenario.calls.iter().map(|call| {
            call.deadline.map_or(Deadline::never(), |at| {
                Deadline::after(Duration::from_millis(at))
            })
        });
        let ends = scenario.calls.iter().map(|call| {
            let (at, _) = call.op.ends.unwrap_or((OVER, OpResult::Ok));
            let mut end = Box::pin(sleep(Duration::from_millis(at)));
            let _is_pending = poll(&mut end, Waker::noop());
            Mutex::new(end)
        });
        Arc::new(Self {
            ends: ends.collect(),
            upstream: upstream.collect(),
            deadlines: deadlines.collect(),
            scenario: scenario.clone(),
        })
    }

    fn call(&self, depth: usize) -> &Call {
        &self.scenario.calls[depth]
    }

    fn limit(&self, depth: usize) -> Duration {
        self.call(depth)
            .limit
            .map_or(Duration::MAX, Duration::from_millis)
    }

    fn grace(&self, depth: usize) -> Duration {
        Duration::from_millis(self.call(depth).grace)
    }
}

fn cancel_after(millis: Millis, token: CancelToken) {
    tokio::spawn(async move {
        sleep(Duration::from_millis(millis)).await;
        token.cancel();
    });
}

type Calls = Pin<Box<dyn Future<Output = Result<usize, CallError>> + Send>>;

/// The functions of one depth: one for each set of options that cannot be an expression.
macro_rules! depth {
    ($depth:literal, $name:literal, $module:ident) => {
        mod $module {
            use super::*;

            depth! { @ props, $depth, $name, inline, [run = "inline", grace = props.grace($depth)] }
            depth! { @ props, $depth, $name, inline_detached, [run = "inline", grace = props.grace($depth), inherit = false] }
            depth! { @ props, $depth, $name, task, [run = "task", grace = props.grace($depth)] }
            depth! { @ props, $depth, $name, task_detached, [run = "task", grace = props.grace($depth), inherit = false] }
            depth! { @ props, $depth, $name, uncancelled, [run = "task", cancel = false] }
            depth! { @ props, $depth, $name, uncancelled_detached, [run = "task", cancel = false, inherit = false] }

            pub(super) fn call(props: Arc<Props>) -> Calls {
                let call = props.call($depth);
                match (call.run, call.cancel, call.inherit) {
                    (Run::Inline, _, true) => Box::pin(inline(props)),
                    (Run::Inline, _, false) => Box::pin(inline_detached(props)),
                    (Run::Task, true, true) => Box::pin(task(props)),
                    (Run::Task, true, false) => Box::pin(task_detached(props)),
                    (Run::Task, false, true) => Box::pin(uncancelled(props)),
                    (Run::Task, false, false) => Box::pin(uncancelled_detached(props)),
                    (Run::SyncInline | Run::SyncWorker, ..) => unreachable!("it is a sync call"),
                }
            }
        }
    };
    (@ $props:ident, $depth:literal, $name:literal, $function:ident, [$($option:tt)*]) => {
        #[timeout(
            name = $name, limit = $props.limit($depth), deadline = $props.deadlines[$depth],
            upstream = $props.upstream[$depth], $($option)*
        )]
        async fn $function($props: Arc<Props>) -> Result<usize, CallError> {
            operate($depth, &$props, cancel_token).await
        }
    };
}

depth! { 0, "stage::0", outermost }
depth! { 1, "stage::1", middle }
depth! { 2, "stage::2", innermost }

/// The operation of each function.
async fn operate(depth: usize, props: &Arc<Props>, token: CancelToken) -> Result<usize, CallError> {
    let left = Deadline::current().remaining();
    assert_eq!(token.remaining(), left);
    note(depth, Sight::Started(left.map(millis)));
    keep(depth, &token);
    if let Some(after) = props.call(depth).stopped {
        cancel_after(after, token.clone());
    }
    let act = AssertUnwindSafe(act(depth, props, &token)).catch_unwind();
    match act.await {
        Ok(result) => {
            note(
                depth,
                Sight::Ended(if result.is_ok() {
                    OpResult::Ok
                } else {
                    OpResult::Err
                }),
            );
            result
        }
        Err(panic) => {
            note(depth, Sight::Ended(OpResult::Panic));
            resume_unwind(panic)
        }
    }
}

async fn act(depth: usize, props: &Arc<Props>, token: &CancelToken) -> Result<usize, CallError> {
    let op = props.call(depth).op;
    if depth + 1 < props.scenario.calls.len() {
        pause(op.calls_after).await;
        let inside = make(depth + 1, props).await;
        if op.passes_on {
            inside?;
        }
    }
    let by_itself = async {
        match op.ends {
            Some((_, result)) => {
                poll_fn(|context| poll(&mut props.ends[depth].lock().unwrap(), context.waker()))
                    .await;
                result
            }
            None => pending().await,
        }
    };
    let by_cancellation = async {
        match op.when_cancelled {
            Some((after, result)) => {
                token.cancelled().await;
                pause(after).await;
                result
            }
            None => pending().await,
        }
    };
    let result = tokio::select! {
        biased;
        result = by_itself => result,
        result = by_cancellation => result,
    };
    match result {
        OpResult::Ok => Ok(depth),
        OpResult::Err => {
            if op.checks {
                token
                    .check()
                    .inspect_err(|_| note(depth, Sight::GotError))?;
            }
            Err(CallError::Own)
        }
        // Without the panic hook, which would print the panic.
        OpResult::Panic => resume_unwind(Box::new(depth)),
    }
}

fn poll(sleep: &mut Pin<Box<Sleep>>, waker: &Waker) -> Poll<()> {
    sleep.as_mut().poll(&mut Context::from_waker(waker))
}

async fn pause(millis: Millis) {
    if millis > 0 {
        sleep(Duration::from_millis(millis)).await;
    }
}

/// Makes the call at `depth`, and resumes a panic of it.
pub async fn make(depth: usize, props: &Arc<Props>) -> Result<usize, CallError> {
    let call = match depth {
        0 => outermost::call,
        1 => middle::call,
        _ => innermost::call,
    };
    note(depth, Sight::Entered);
    let outcome = AssertUnwindSafe(call(Arc::clone(props)))
        .catch_unwind()
        .await;
    note(depth, Sight::Returned(returned(depth, named, &outcome)));
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// What a call returned. `named` tells the depth of a call of this name.
pub fn returned<P>(
    depth: usize,
    named: fn(&str) -> Option<usize>,
    outcome: &Result<Result<usize, CallError>, P>,
) -> Returned
where
    P: Deref<Target = dyn Any + Send>,
{
    let plain = |status| Returned {
        status,
        error: None,
        panicked: false,
    };
    match outcome {
        Ok(Ok(result)) => {
            assert_eq!(*result, depth);
            plain(CallStatus::Ok)
        }
        Ok(Err(CallError::Timeout(error))) if named(error.name()) == Some(depth) => Returned {
            error: Some((
                error.cause(),
                error.status() != CallStatus::NotStarted,
                millis(error.elapsed()),
            )),
            ..plain(error.status())
        },
        // The error of a nested call is the operation's own error here.
        Ok(Err(CallError::Own | CallError::Timeout(_))) => plain(CallStatus::Failed),
        Err(panic) => {
            let thrown = panic
                .downcast_ref::<usize>()
                .expect("the operation's own panic");
            assert!(*thrown >= depth);
            Returned {
                panicked: true,
                ..plain(CallStatus::Failed)
            }
        }
    }
}
