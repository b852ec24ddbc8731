//! Plays a scenario on a paused clock and records the observations of each call.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use timeout_runtime::{
    CallContext, CallId, CallStatus, CancelToken, Cause, Deadline, EventKind, Registration,
    add_listener,
};
use tokio::time::{Instant, sleep_until};

use super::scenario::{DEPTH, Millis, OpResult, Scenario};
use super::scenario_calls::{Props, make};

/// The instant at which the outermost call is dropped, if it has not ended.
pub const LAST: Millis = 500;
/// The instant at which the runtime is shut down; nothing happens any more.
pub const OVER: Millis = 1000;

/// What the call returned to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    pub status: CallStatus,
    /// For an outcome without a result: its cause, whether the operation started, and the elapsed
    /// time.
    pub error: Option<(Cause, bool, Millis)>,
    pub panicked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    pub id: CallId,
    pub kind: EventKind<'static>,
    pub elapsed: Millis,
    pub limit: Option<Duration>,
    /// The cause of the operation's token when the event was emitted.
    pub token: Option<Cause>,
}

/// An observation of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    Entered,
    /// The operation started, with this much time left for nested calls.
    Started(Option<Millis>),
    /// The operation received the error of its token.
    GotError,
    Ended(OpResult),
    Event(Reported),
    Returned(Returned),
    /// The cause of its token after everything has ended.
    Reads(Option<Cause>),
}

/// One observation of the call at `depth`.
#[derive(Clone, Debug)]
pub struct Note {
    pub at: Millis,
    pub depth: usize,
    pub sight: Sight,
}

struct Stage {
    start: Instant,
    notes: Vec<Note>,
    tokens: [Option<CancelToken>; DEPTH],
    is_over: bool,
}

thread_local! {
    // A scenario runs on one thread only.
    static STAGE: RefCell<Option<Stage>> = const { RefCell::new(None) };
}

fn with<T>(f: impl FnOnce(&mut Stage) -> T) -> Option<T> {
    STAGE.with(|stage| stage.borrow_mut().as_mut().map(f))
}

/// Keeps the token of the call at `depth` for later observations.
pub fn keep(depth: usize, token: &CancelToken) {
    with(|stage| stage.tokens[depth] = Some(token.clone()));
}

pub fn note(depth: usize, sight: Sight) {
    with(|stage| {
        let at = if stage.is_over {
            OVER
        } else {
            millis(stage.start.elapsed())
        };
        stage.notes.push(Note { at, depth, sight });
    });
}

/// Stands for an instant between two milliseconds, at which nothing should happen.
const BETWEEN: Millis = Millis::MAX - 1;

pub fn millis(duration: Duration) -> Millis {
    let whole = u64::try_from(duration.as_millis()).unwrap_or(BETWEEN);
    if duration == Duration::from_millis(whole) {
        whole
    } else {
        BETWEEN
    }
}

/// The depth of the calls of this name.
pub fn named(name: &str) -> Option<usize> {
    name.strip_prefix("stage::")?.parse().ok()
}

fn listen() -> Registration {
    add_listener(|event| {
        let Some(depth) = named(event.name) else {
            return;
        };
        let Some(token) = with(|stage| stage.tokens[depth].clone()) else {
            return;
        };
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

/// Plays `scenario` and returns all observations in their order.
pub fn play(scenario: &Scenario) -> Vec<Note> {
    let _listener = listen();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let start = Instant::now();
        let stage = Stage {
            start,
            notes: Vec::new(),
            tokens: [None, None, None],
            is_over: false,
        };
        STAGE.set(Some(stage));
        let until = |millis| sleep_until(start + Duration::from_millis(millis));
        let props = Props::of(scenario);
        let context = scenario.context.map(Duration::from_millis);
        let context = context.map_or(Deadline::never(), Deadline::after);
        let context = CallContext::detached().with_deadline(context);
        let played = context.scope(async {
            {
                let call = AssertUnwindSafe(make(0, &props)).catch_unwind();
                let dropped_at = until(scenario.dropped_at.unwrap_or(LAST));
                tokio::select! {
                    biased;
                    outcome = call => drop(outcome),
                    () = dropped_at => {}
                }
            }
            until(OVER).await;
        });
        played.await;
        let tokens = with(|stage| stage.tokens.clone()).into_iter().flatten();
        for (depth, token) in tokens.enumerate() {
            if let Some(token) = token {
                note(depth, Sight::Reads(token.cause()));
            }
        }
    });
    with(|stage| stage.is_over = true);
    drop(runtime);
    STAGE.take().map(|stage| stage.notes).unwrap_or_default()
}
