//! Random nested calls and the events that end them.

#![allow(unreachable_pub)] // Each test file uses its part.

use proptest::collection;
use proptest::option::{self, weighted};
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;

/// Milliseconds of virtual time. Instants count from the start of the scenario.
pub type Millis = u64;

/// How an operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpResult {
    Ok,
    Err,
    Panic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Polled in place.
    Inline,
    Task,
    /// A sync operation on the caller's thread.
    SyncInline,
    SyncWorker,
}

/// The behaviour of an operation. It first makes the next call of the scenario, if any. Then it
/// waits for its own end or for its cancellation, whichever comes first.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Time between its start and the nested call.
    pub calls_after: Millis,
    /// Whether it fails with the nested call.
    pub passes_on: bool,
    /// The instant at which it ends by itself; immediately if that has passed.
    pub ends: Option<(Millis, OpResult)>,
    /// Time between its cancellation and its end, if it waits for its cancellation.
    pub when_cancelled: Option<(Millis, OpResult)>,
    /// Whether it checks its token before it fails, and fails with that error if there is one.
    pub checks: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub run: Run,
    pub cancel: bool,
    pub inherit: bool,
    pub limit: Option<Millis>,
    pub grace: Millis,
    /// The instant of a shared deadline.
    pub deadline: Option<Millis>,
    /// The instant at which its upstream token is cancelled.
    pub upstream: Option<Millis>,
    /// Time between its start and the cancellation of its own token by user code.
    pub stopped: Option<Millis>,
    pub op: Op,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    /// The outermost call first; each operation makes the next call.
    pub calls: Vec<Call>,
    /// The deadline of the surrounding context.
    pub context: Option<Millis>,
    /// The instant at which the future of the outermost call is dropped.
    pub dropped_at: Option<Millis>,
}

/// The greatest number of nested calls.
pub const DEPTH: usize = 3;

/// Short durations, so that many instants coincide.
fn millis() -> std::ops::Range<Millis> {
    0..13
}

fn result() -> impl Strategy<Value = OpResult> {
    prop_oneof![4 => Just(OpResult::Ok), 3 => Just(OpResult::Err), 1 => Just(OpResult::Panic)]
}

fn op() -> impl Strategy<Value = Op> {
    let ends = option::of((millis(), result()));
    let when_cancelled = weighted(0.7, (prop_oneof![Just(0), 0..6_u64], result()));
    let parts = (
        prop_oneof![2 => Just(0), 1 => 0..6_u64],
        any::<bool>(),
        ends,
        when_cancelled,
        any::<bool>(),
    );
    parts.prop_map(
        |(calls_after, passes_on, ends, when_cancelled, checks)| Op {
            calls_after,
            passes_on,
            ends,
            when_cancelled,
            checks,
        },
    )
}

fn async_run() -> impl Strategy<Value = (Run, bool)> {
    prop_oneof![
        3 => Just((Run::Inline, true)),
        2 => Just((Run::Task, true)),
        2 => Just((Run::Task, false)),
    ]
}

fn sync_run() -> impl Strategy<Value = (Run, bool)> {
    prop_oneof![
        2 => Just((Run::SyncInline, true)),
        3 => Just((Run::SyncWorker, true)),
        2 => Just((Run::SyncWorker, false)),
    ]
}

/// A call whose place and `cancel` come from `run`.
fn call(run: impl Strategy<Value = (Run, bool)>) -> impl Strategy<Value = Call> {
    let ends = (
        weighted(0.8, millis()),
        weighted(0.3, millis()),
        weighted(0.3, millis()),
        weighted(0.2, millis()),
    );
    let grace = prop_oneof![Just(0), 0..6_u64];
    let parts = (run, weighted(0.8, Just(())), ends, grace, op());
    parts.prop_map(
        |((run, cancel), inherit, (limit, deadline, upstream, stopped), grace, op)| Call {
            run,
            cancel,
            inherit: inherit.is_some(),
            limit,
            grace: if cancel { grace } else { 0 },
            deadline,
            upstream,
            stopped,
            op,
        },
    )
}

/// A scenario of sync calls. Each operation ends: a thread cannot be dropped.
pub fn sync_scenario() -> impl Strategy<Value = Scenario> {
    let calls = collection::vec(call(sync_run()), 1..=DEPTH);
    (calls, weighted(0.2, millis())).prop_map(|(mut calls, context)| {
        for call in &mut calls {
            call.op.ends.get_or_insert((LATE, OpResult::Ok));
        }
        Scenario {
            calls,
            context,
            dropped_at: None,
        }
    })
}

/// An instant after all others at which something happens.
const LATE: Millis = 60;

pub fn scenario() -> impl Strategy<Value = Scenario> {
    let calls = collection::vec(call(async_run()), 1..=DEPTH);
    let parts = (calls, weighted(0.2, millis()), weighted(0.2, millis()));
    parts.prop_map(|(calls, context, dropped_at)| Scenario {
        calls,
        context,
        dropped_at,
    })
}
