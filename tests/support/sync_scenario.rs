//! Plays a scenario of sync calls on a test clock: the annotated functions, the behaviour of their
//! operations, and the observations of each call.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use timeout_runtime::testing::TestClock;
use timeout_runtime::{
    CallContext, CancelToken, Deadline, Registration, TimeoutError, add_listener, timeout,
};

use super::call_error::CallError;
use super::scenario::{Call, DEPTH, Millis, OpResult, Run, Scenario};
use super::scenario_calls::returned;
use super::scenario_run::{Note, OVER, Reported, Sight, millis};
use super::support::SOON;

struct Stage {
    clock: TestClock,
    notes: Vec<Note>,
    tokens: [Option<CancelToken>; DEPTH],
}

/// One scenario is played at a time.
static STAGE: Mutex<Option<Stage>> = Mutex::new(None);

fn stage() -> MutexGuard<'static, Option<Stage>> {
    STAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(depth: usize, sight: Sight) {
    if let Some(stage) = &mut *stage() {
        let at = millis(stage.clock.now());
        stage.notes.push(Note { at, depth, sight });
    }
}

/// The depth of the calls of this name.
fn named(name: &str) -> Option<usize> {
    name.strip_prefix("sync_stage::")?.parse().ok()
}

fn listen() -> Registration {
    add_listener(|event| {
        let Some(depth) = named(event.name) else {
            return;
        };
        let token = stage()
            .as_ref()
            .and_then(|stage| stage.tokens[depth].clone());
        let event = Reported {
            id: event.call,
            kind: event.clone().into_owned().kind,
            elapsed: millis(event.elapsed),
            limit: event.limit,
            token: token.and_then(|token| token.cause()),
        };
        note(depth, Sight::Event(event));
    })
}

/// The state that is set up before the outermost call is made.
struct Props {
    scenario: Scenario,
    clock: TestClock,
    upstream: Vec<Option<CancelToken>>,
    deadlines: Vec<Deadline>,
}

impl Props {
    fn of(scenario: &Scenario, clock: &TestClock) -> Arc<Self> {
        let upstream = scenario.calls.iter().map(|call| {
            let token = call.upstream.map(|at| (at, CancelToken::new()));
            token.map(|(at, token)| {
                cancel_after(clock, at, token.clone());
                token
            })
        });
        let deadlines = scenario.calls.iter().map(|call| {
            call.deadline.map_or(Deadline::never(), |at| {
                Deadline::after(Duration::from_millis(at))
            })
        });
        Arc::new(Self {
            upstream: upstream.collect(),
            deadlines: deadlines.collect(),
            scenario: scenario.clone(),
            clock: clock.clone(),
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

fn cancel_after(clock: &TestClock, after: Millis, token: CancelToken) {
    drop(clock.spawn(move || {
        pause(after);
        token.cancel();
    }));
}

/// A pause that no cancellation ends.
fn pause(after: Millis) {
    let ended = CancelToken::new().sleep(Duration::from_millis(after));
    assert!(ended.is_ok());
}

/// The functions of one depth: one for each set of options that cannot be an expression.
macro_rules! depth {
    ($depth:literal, $name:literal, $module:ident) => {
        mod $module {
            use super::*;

            depth! { @ props, $depth, $name, inline, [run = "inline", grace = props.grace($depth)] }
            depth! { @ props, $depth, $name, inline_detached, [run = "inline", grace = props.grace($depth), inherit = false] }
            depth! { @ props, $depth, $name, worker, [grace = props.grace($depth)] }
            depth! { @ props, $depth, $name, worker_detached, [grace = props.grace($depth), inherit = false] }
            depth! { @ props, $depth, $name, uncancelled, [cancel = false] }
            depth! { @ props, $depth, $name, uncancelled_detached, [cancel = false, inherit = false] }

            pub(super) fn call(props: Arc<Props>) -> Result<usize, CallError> {
                let call = props.call($depth);
                match (call.run, call.cancel, call.inherit) {
                    (Run::SyncInline, _, true) => inline(props),
                    (Run::SyncInline, _, false) => inline_detached(props),
                    (_, true, true) => worker(props),
                    (_, true, false) => worker_detached(props),
                    (_, false, true) => uncancelled(props),
                    (_, false, false) => uncancelled_detached(props),
                }
            }
        }
    };
    (@ $props:ident, $depth:literal, $name:literal, $function:ident, [$($option:tt)*]) => {
        #[timeout(
            name = $name, limit = $props.limit($depth), deadline = $props.deadlines[$depth],
            upstream = $props.upstream[$depth], $($option)*
        )]
        fn $function($props: Arc<Props>) -> Result<usize, CallError> {
            operate($depth, &$props, &cancel_token)
        }
    };
}

depth! { 0, "sync_stage::0", outermost }
depth! { 1, "sync_stage::1", middle }
depth! { 2, "sync_stage::2", innermost }

/// The operation of each function.
fn operate(depth: usize, props: &Arc<Props>, token: &CancelToken) -> Result<usize, CallError> {
    let left = Deadline::current().remaining();
    assert_eq!(token.remaining(), left);
    note(depth, Sight::Started(left.map(millis)));
    if let Some(stage) = &mut *stage() {
        stage.tokens[depth] = Some(token.clone());
    }
    if let Some(after) = props.call(depth).stopped {
        cancel_after(&props.clock, after, token.clone());
    }
    match catch_unwind(AssertUnwindSafe(|| act(depth, props, token))) {
        Ok(result) => {
            let ended = if result.is_ok() {
                OpResult::Ok
            } else {
                OpResult::Err
            };
            note(depth, Sight::Ended(ended));
            result
        }
        Err(panic) => {
            note(depth, Sight::Ended(OpResult::Panic));
            resume_unwind(panic)
        }
    }
}

fn act(depth: usize, props: &Arc<Props>, token: &CancelToken) -> Result<usize, CallError> {
    let op = props.call(depth).op;
    if depth + 1 < props.scenario.calls.len() {
        pause(op.calls_after);
        let inside = make(depth + 1, props);
        if op.passes_on {
            inside?;
        }
    }
    match wait(depth, props, token) {
        OpResult::Ok => Ok(depth),
        OpResult::Err => {
            if op.checks {
                token
                    .check()
                    .inspect_err(|_: &TimeoutError| note(depth, Sight::GotError))?;
            }
            Err(CallError::Own)
        }
        // Without the panic hook, which would print the panic.
        OpResult::Panic => resume_unwind(Box::new(depth)),
    }
}

/// Waits for the end of the operation, or for its cancellation, whichever comes first.
fn wait(depth: usize, props: &Props, token: &CancelToken) -> OpResult {
    let op = props.call(depth).op;
    let (end, by_itself) = op.ends.expect("a sync operation ends");
    let left = || Duration::from_millis(end).saturating_sub(props.clock.now());
    let Some((after, when_cancelled)) = op.when_cancelled else {
        assert!(CancelToken::new().sleep(left()).is_ok());
        return by_itself;
    };
    if left().is_zero() || token.wait_timeout(left()).is_none() {
        return by_itself;
    }
    let after = Duration::from_millis(after);
    let by_itself_first = left() <= after;
    let pause = left().min(after);
    assert!(CancelToken::new().sleep(pause).is_ok());
    if by_itself_first {
        by_itself
    } else {
        when_cancelled
    }
}

/// Makes the call at `depth`, and resumes a panic of it.
fn make(depth: usize, props: &Arc<Props>) -> Result<usize, CallError> {
    let call = match depth {
        0 => outermost::call,
        1 => middle::call,
        _ => innermost::call,
    };
    note(depth, Sight::Entered);
    let outcome = catch_unwind(AssertUnwindSafe(|| call(Arc::clone(props))));
    note(depth, Sight::Returned(returned(depth, named, &outcome)));
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Plays `scenario` and returns all observations in their order.
pub fn play(scenario: &Scenario) -> Vec<Note> {
    let _listener = listen();
    let clock = TestClock::new().patience(SOON);
    *stage() = Some(Stage {
        clock: clock.clone(),
        notes: Vec::new(),
        tokens: [None, None, None],
    });
    clock.run(|| {
        let props = Props::of(scenario, &clock);
        let context = scenario.context.map(Duration::from_millis);
        let context = context.map_or(Deadline::never(), Deadline::after);
        let context = CallContext::detached().with_deadline(context);
        let outcome = catch_unwind(AssertUnwindSafe(|| context.run(|| make(0, &props))));
        drop(outcome);
        clock.advance(Duration::from_millis(OVER).saturating_sub(clock.now()));
    });
    let tokens = stage().as_ref().map(|stage| stage.tokens.clone());
    for (depth, token) in tokens.into_iter().flatten().enumerate() {
        if let Some(token) = token {
            note(depth, Sight::Reads(token.cause()));
        }
    }
    let stage = stage().take();
    stage.map(|stage| stage.notes).unwrap_or_default()
}
