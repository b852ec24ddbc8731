//! The rules as a model: for each call of a scenario, its possible outcomes, causes and events.
//!
//! Where two things happen at the same instant, either may come first, and the model allows both.
//! It does not guess their order: each call is checked against the observations of its enclosing
//! and nested calls, which are checked themselves.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::cmp::Ordering;

use timeout_runtime::{CallStatus, Cause};

use super::observations::{At, ModelOutcome, Seen};
use super::scenario::{Call, Millis, OpResult, Run, Scenario};
use super::scenario_run::{LAST, OVER, Returned};

pub const NEVER: Millis = Millis::MAX;

/// The possible cancellations of a token; `None` if it may never be cancelled.
type Cancellations = Vec<Option<At<Cause>>>;

/// A limit is an inherited deadline to nested calls.
fn entering(cause: Cause) -> Cause {
    match cause {
        Cause::TimedOut => Cause::DeadlineExceeded,
        cause => cause,
    }
}

/// A scenario with the observations of its calls.
pub struct Played<'a> {
    pub scenario: &'a Scenario,
    pub seen: Vec<Seen>,
}

/// Facts that hold from a call's entry on.
impl Played<'_> {
    fn call(&self, depth: usize) -> &Call {
        &self.scenario.calls[depth]
    }

    fn entered(&self, depth: usize) -> Millis {
        self.seen[depth].entered.unwrap_or(NEVER)
    }

    /// The enclosing call, if this call inherits from it.
    fn around(&self, depth: usize) -> Option<usize> {
        depth.checked_sub(1).filter(|_| self.call(depth).inherit)
    }

    /// The nearest deadline names the cause; at equal instants the inherited one wins.
    fn deadline(&self, depth: usize) -> At<Cause> {
        let call = self.call(depth);
        let own = call
            .limit
            .map_or(NEVER, |limit| self.entered(depth) + limit);
        let bound = self.inherited(depth, self.seen[depth].places[0]);
        let bound = bound.min(call.deadline.unwrap_or(NEVER));
        if bound <= own {
            (bound, Cause::DeadlineExceeded)
        } else {
            (own, Cause::TimedOut)
        }
    }

    /// The deadline that the call inherits at position `place` of the observations.
    fn inherited(&self, depth: usize, place: Option<usize>) -> Millis {
        let around = self.around(depth);
        around.map_or(self.context(depth), |around| self.handed_on(around, place))
    }

    /// The deadline of the context, for the outermost call only.
    fn context(&self, depth: usize) -> Millis {
        let context = self
            .scenario
            .context
            .filter(|_| depth == 0 && self.call(depth).inherit);
        context.unwrap_or(NEVER)
    }

    /// `cancel = false` hides the deadline from nested calls, and so does an outcome in time.
    fn handed_on(&self, depth: usize, place: Option<usize>) -> Millis {
        if self.is_binding(depth, place) {
            self.deadline(depth).0
        } else {
            self.inherited(depth, place)
        }
    }

    fn is_binding(&self, depth: usize, place: Option<usize>) -> bool {
        let has_result = matches!(
            self.seen[depth].outcome(),
            Some((_, ModelOutcome::Result(_)))
        );
        let is_over = has_result && self.seen[depth].places[3] < place;
        self.call(depth).cancel && !is_over
    }

    /// The deadline of nested calls when the operation starts.
    pub fn inside(&self, depth: usize) -> Millis {
        self.handed_on(depth, self.seen[depth].places[1])
    }

    /// Latest time at which the caller stops waiting: deadline plus grace, but never past the
    /// enclosing call's end. Without a cancellation there is no grace, and nested calls have only
    /// the inherited deadline.
    fn end(&self, depth: usize) -> Millis {
        let (deadline, _) = self.deadline(depth);
        let (call, place) = (self.call(depth), self.seen[depth].places[0]);
        if !call.cancel {
            return deadline;
        }
        let around = self.around(depth).map_or(self.context(depth), |around| {
            if self.is_binding(around, place) {
                self.end(around)
            } else {
                self.inherited(depth, place)
            }
        });
        deadline.saturating_add(call.grace).min(around)
    }

    /// The instant at which the call's future is dropped, if the call has not ended.
    fn dropped_at(&self, depth: usize) -> Millis {
        let Some(around) = depth.checked_sub(1) else {
            return self.scenario.dropped_at.unwrap_or(LAST);
        };
        // A future polled in place is dropped with its call, a task with its runtime.
        let around = &self.seen[around];
        match (around.ended, self.call(depth - 1).run, around.outcome()) {
            (Some(_), ..) => NEVER,
            (None, Run::Inline, Some((at, _))) => at,
            (None, ..) => OVER,
        }
    }
}

/// The token.
impl Played<'_> {
    /// Cancellations by others. Each is certain, unless the token was cancelled before.
    fn by_others(&self, depth: usize) -> Vec<At<Cause>> {
        let seen = &self.seen[depth];
        let upstream = self.call(depth).upstream;
        let stopped = self.call(depth).stopped.zip(seen.started);
        let stopped = stopped.map(|(after, (started, _))| started + after);
        let dropped = match seen.outcome() {
            Some((at, ModelOutcome::Dropped)) => Some(at),
            _ => None,
        };
        let others = [upstream, stopped, dropped].into_iter().flatten();
        others.map(|at| (at, Cause::Cancelled)).collect()
    }

    /// An outcome in time disarms. Returns `None` if the outcome comes at the deadline
    /// itself.
    fn is_disarmed(&self, depth: usize) -> Option<bool> {
        let (deadline, _) = self.deadline(depth);
        match self.seen[depth].outcome() {
            Some((at, ModelOutcome::Result(_))) if at == deadline => None,
            Some((at, ModelOutcome::Result(_))) => Some(at < deadline),
            _ => Some(false),
        }
    }

    /// The certain and the possible sources of the token's cancellation.
    fn sources(&self, depth: usize) -> [Vec<At<Cause>>; 2] {
        let (mut certain, mut perhaps) = (self.by_others(depth), Vec::new());
        let deadline = self.deadline(depth);
        // `cancel = false` means it.
        if self.call(depth).cancel && deadline.0 != NEVER {
            match self.is_disarmed(depth) {
                Some(true) => {}
                Some(false) => certain.push(deadline),
                None => perhaps.push(deadline),
            }
        }
        let context = Some((self.context(depth), Cause::DeadlineExceeded));
        let context = vec![context.filter(|(at, _)| *at != NEVER)];
        let around = self.around(depth);
        let above = around.map_or(context, |around| self.cancellations(around));
        let last = above
            .iter()
            .map(|cancelled| cancelled.map_or(NEVER, |(at, _)| at))
            .max();
        for (at, cause) in above.into_iter().flatten() {
            let is_certain = Some(at) == last;
            let sources = if is_certain {
                &mut certain
            } else {
                &mut perhaps
            };
            sources.push((at, entering(cause)));
        }
        [certain, perhaps]
    }

    /// A cause is set once. The first source counts; a certain one excludes all later ones.
    fn cancellations(&self, depth: usize) -> Cancellations {
        let [certain, perhaps] = self.sources(depth);
        let first = certain.iter().map(|(at, _)| *at).min().unwrap_or(NEVER);
        let sources = certain.into_iter().chain(perhaps);
        let mut all: Cancellations = sources.filter(|(at, _)| *at <= first).map(Some).collect();
        if first == NEVER {
            all.push(None);
        }
        all
    }

    /// The states that the token may be in at the instant `at`.
    pub fn reads(&self, depth: usize, at: Millis) -> Vec<Option<Cause>> {
        let mut reads = Vec::new();
        for cancelled in self.cancellations(depth) {
            let (cancelled_at, cause) =
                cancelled.map_or((NEVER, None), |(at, cause)| (at, Some(cause)));
            if cancelled_at <= at {
                reads.push(cause);
            }
            if cancelled_at >= at {
                reads.push(None);
            }
        }
        reads
    }
}

/// The outcomes.
impl Played<'_> {
    /// The event that ends the wait: the token's cancellation or the deadline, or either one if
    /// both come at the same instant.
    fn wait_ends(&self, depth: usize, cancelled: Option<At<Cause>>) -> Vec<At<Cause>> {
        let mut ends = vec![self.deadline(depth)];
        ends.extend(cancelled);
        let first = ends.iter().map(|(at, _)| *at).min();
        ends.retain(|(at, _)| Some(*at) == first);
        ends
    }

    /// Nothing starts late. Of several events before the entry, any may be the cause.
    fn not_started(&self, depth: usize) -> Vec<At<ModelOutcome>> {
        let entered = self.entered(depth);
        let mut over = self.sources(depth).concat();
        over.push(self.deadline(depth));
        over.retain(|(at, _)| *at <= entered);
        let refused = |(_, cause)| (entered, ModelOutcome::NotStarted(cause));
        over.into_iter().map(refused).collect()
    }

    fn may_start(&self, depth: usize, end: At<Cause>) -> bool {
        let entered = self.entered(depth);
        self.deadline(depth).0 > entered && end.0 >= entered
    }

    /// The wait ends at the deadline, or at a cancellation from elsewhere, plus
    /// grace.
    fn wait(&self, depth: usize, (at, cause): At<Cause>) -> At<Cause> {
        let over = at.saturating_add(self.call(depth).grace);
        (over.min(self.end(depth)), cause)
    }

    /// A success counts until the wait ends, and a published result wins a tie.
    /// A success returned by a poll in place always counts.
    /// A sync call in place returns with its operation; only its end bounds a success.
    /// A panic counts too, and is never dropped while the caller waits.
    fn success_or_panic(
        &self,
        depth: usize,
        ended: At<OpResult>,
        wait: At<Cause>,
    ) -> Vec<At<ModelOutcome>> {
        let result = (ended.0, ModelOutcome::Result(ended.1));
        let stopped = (wait.0, ModelOutcome::Stopped(wait.1));
        let [_, _, published, decided, _] = self.seen[depth].places;
        let is_in_time = match (self.call(depth).run, ended.0.cmp(&wait.0)) {
            (Run::Inline, _) => true,
            (Run::SyncInline, _) if ended.1 == OpResult::Panic => true,
            (Run::SyncInline, _) if ended.0 == self.end(depth) => return vec![result, stopped],
            (Run::SyncInline, _) => ended.0 < self.end(depth),
            // The operation and its caller are on two threads.
            (Run::SyncWorker, Ordering::Equal) => return vec![result, stopped],
            (Run::Task, Ordering::Equal) => published < decided,
            (Run::Task | Run::SyncWorker, order) => order.is_lt(),
        };
        vec![if is_in_time { result } else { stopped }]
    }

    /// An error counts before the deadline and before the cancellation. A later error still
    /// ends the wait.
    fn error(&self, depth: usize, at: Millis, end: At<Cause>) -> Vec<At<ModelOutcome>> {
        let (over, cause) = self.wait(depth, end);
        let failed = (at, ModelOutcome::Result(OpResult::Err));
        let over = match self.call(depth).run {
            Run::SyncInline => at,
            _ => at.min(over),
        };
        let ended = (over, ModelOutcome::Stopped(cause));
        match at.cmp(&end.0) {
            Ordering::Less => vec![failed],
            Ordering::Equal if at < self.deadline(depth).0 => vec![failed, ended],
            _ => vec![ended],
        }
    }

    /// The possible outcomes of the call and their instants, given how its operation ended.
    pub fn outcomes(&self, depth: usize) -> Vec<At<ModelOutcome>> {
        let mut outcomes = self.not_started(depth);
        let cancelled = self.cancellations(depth).into_iter();
        let ends = cancelled.flat_map(|cancelled| self.wait_ends(depth, cancelled));
        for end in ends.filter(|end| self.may_start(depth, *end)) {
            let (mut over, cause) = self.wait(depth, end);
            let ended = self.seen[depth].ended;
            if let (Run::SyncInline, Some((at, _))) = (self.call(depth).run, ended) {
                over = at;
            }
            match ended {
                Some((at, OpResult::Err)) => outcomes.extend(self.error(depth, at, end)),
                Some(ended) => outcomes.extend(self.success_or_panic(depth, ended, (over, cause))),
                None => outcomes.push((over, ModelOutcome::Stopped(cause))),
            }
        }
        // A dropped call has no other outcome.
        let dropped_at = self.dropped_at(depth);
        if outcomes.iter().any(|(at, _)| *at >= dropped_at) {
            outcomes.retain(|(at, _)| *at <= dropped_at);
            outcomes.push((dropped_at, ModelOutcome::Dropped));
        }
        outcomes
    }
}

/// The operation.
impl Played<'_> {
    /// How the operation may end by itself, and when, given how its nested call ended; [`NEVER`] if
    /// it does not end.
    fn ends(&self, depth: usize) -> Vec<At<OpResult>> {
        let (started, _) = self.seen[depth].started.expect("it has started");
        let op = self.call(depth).op;
        let never = (NEVER, OpResult::Ok);
        let mut begins = started;
        if depth + 1 < self.seen.len() {
            match self.seen[depth + 1].returned {
                Some((at, inside)) if inside.panicked => return vec![(at, OpResult::Panic)],
                Some((at, inside)) if op.passes_on && inside.status != CallStatus::Ok => {
                    return vec![(at, OpResult::Err)];
                }
                Some((at, _)) => begins = at,
                None => return vec![never],
            }
        }
        let after = |(after, result): At<OpResult>, at: Millis| (at + after, result);
        let by_itself = op
            .ends
            .map_or(never, |(at, result)| (at.max(begins), result));
        let mut ends = Vec::new();
        for cancelled in self.cancellations(depth) {
            let when_cancelled = cancelled.zip(op.when_cancelled);
            let by_cancellation = when_cancelled.map_or(never, |((at, _), when_cancelled)| {
                after(when_cancelled, at.max(begins))
            });
            let first = by_itself.0.min(by_cancellation.0);
            let both = [by_itself, by_cancellation].into_iter();
            ends.extend(both.filter(|(at, _)| *at == first));
        }
        ends
    }

    /// Whether this call and all nested ones are polled in place.
    fn is_in_place(&self, depth: usize) -> bool {
        let mut calls = self.scenario.calls[depth..].iter();
        calls.all(|call| call.run == Run::Inline)
    }

    /// Whether the operation ended as the rules demand: by itself, or not at all because it was
    /// destroyed.
    pub fn ended_rightly(&self, depth: usize) -> bool {
        let (ends, seen) = (self.ends(depth), &self.seen[depth]);
        let destroyed = match (self.call(depth).run, seen.outcome()) {
            (Run::Inline, Some((at, _))) => at,
            _ => OVER,
        };
        match seen.ended {
            Some(ended) => ends.contains(&ended) && ended.0 <= destroyed,
            // An inline operation is polled once more before it is destroyed, unless its call is
            // dropped.
            None => ends.iter().any(|(at, _)| {
                let is_dropped = matches!(seen.outcome(), Some((_, ModelOutcome::Dropped)));
                let is_last = *at == destroyed && (is_dropped || !self.is_in_place(depth));
                *at > destroyed || is_last
            }),
        }
    }

    /// Whether the nested call was made as the rules demand: not if the operation did not start or
    /// was destroyed before.
    pub fn called_rightly(&self, depth: usize) -> bool {
        let (seen, entered) = (&self.seen[depth], self.seen[depth + 1].entered);
        let Some((started, _)) = seen.started else {
            return entered.is_none();
        };
        let at = started + self.call(depth).op.calls_after;
        let order = match (self.call(depth).run, seen.outcome()) {
            (Run::Inline, Some((destroyed, _))) => at.cmp(&destroyed),
            _ => Ordering::Less,
        };
        match order {
            Ordering::Less => entered == Some(at),
            Ordering::Equal => entered.is_none_or(|entered| entered == at),
            Ordering::Greater => entered.is_none(),
        }
    }

    /// The late event after the outcome, if the result did not count, and its
    /// instant.
    pub fn late(&self, depth: usize) -> Option<At<OpResult>> {
        let (seen, (decided_at, outcome)) = (&self.seen[depth], self.seen[depth].outcome()?);
        match (outcome, seen.ended) {
            (ModelOutcome::Result(_), _) => None,
            (_, Some((at, result))) => Some((at.max(decided_at), result)),
            // A future dropped unfinished with its inline call has no late event.
            (_, None) if self.call(depth).run == Run::Inline => None,
            (_, None) => seen.started.map(|_| (OVER, OpResult::Err)),
        }
    }

    /// Whether an operation that failed late had received the error of its token: the late event
    /// says that it has stopped. `None` if both are possible.
    pub fn has_stopped(&self, depth: usize) -> Option<bool> {
        let seen = &self.seen[depth];
        let Some(ended) = seen.places[2] else {
            // A task that was cancelled before its runtime was shut down. The shutdown destroys
            // tasks in any order, and cancels the nested calls of each.
            let is_cancelled = seen.reads.is_some();
            return (is_cancelled || depth == 0).then_some(is_cancelled);
        };
        let late = seen.events.get(1).map_or(0, |(at, _)| *at);
        let mut has_stopped = Some(false);
        for (at, place) in self.errors_of_token(depth) {
            let reads = self.reads(depth, at);
            let is_certain = place < ended && reads.iter().all(Option::is_some);
            let is_possible = at <= late && reads.iter().any(Option::is_some);
            if is_certain {
                return Some(true);
            }
            if is_possible {
                has_stopped = None;
            }
        }
        has_stopped
    }

    /// The instants and positions at which the operation, or one that it had called, received an
    /// error that is also that of this call's token, if the token was cancelled by then.
    fn errors_of_token(&self, depth: usize) -> Vec<At<usize>> {
        let mut errors = Vec::from_iter(self.seen[depth].got_error);
        for below in depth + 1..self.seen.len() {
            if !self.call(below).inherit {
                break;
            }
            let seen = &self.seen[below];
            errors.extend(seen.got_error);
            // The error of a nested call's own limit is not that of the enclosing call.
            let is_shared = |returned: &Returned| {
                returned
                    .error
                    .is_some_and(|(cause, ..)| cause != Cause::TimedOut)
            };
            let returned = seen.returned.filter(|(_, returned)| is_shared(returned));
            let error = returned.zip(seen.places[4]);
            errors.extend(error.map(|((at, _), place)| (at, place)));
        }
        errors
    }
}
