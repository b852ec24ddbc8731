//! The entry of a call: its terms are settled, or it is refused.

use crate::deadline::Clock;
use crate::error::{Cause, TimeoutError};
use crate::event::CallId;
use crate::frame;
use crate::terms::{FullTerms, PlainTerms, Terms};
use crate::tick::Tick;
use crate::token::node::{Head, NodeRef, Watch};
use crate::workers;

use super::ask::Ask;
use super::view::Caller;

/// A call about to start, and the tokens that stop it.
pub(crate) struct CallStart {
    pub(crate) terms: Terms,
    pub(crate) parents: Vec<NodeRef>,
}

impl CallStart {
    /// The head of the call's token, with the tokens that it is to be linked below.
    pub(crate) fn head(self, caller: Caller) -> (Head, Vec<NodeRef>) {
        let watch = match caller {
            Caller::Parked if self.terms.cancels_at_deadline() => Watch::Watched,
            _ => Watch::Clocked,
        };
        (Head::new(self.terms, watch), self.parents)
    }
}

/// Settles the terms of a call that starts now. It does not start if it has ended already, or if too many abandoned operations of
/// its name are still running.
pub(crate) fn start(ask: Ask, clock: Clock) -> Result<CallStart, TimeoutError> {
    let plain_limit = ask.plain_limit().filter(|_| clock == Clock::Real);
    if let Some(limit) = plain_limit {
        let terms = Terms::Plain(PlainTerms::new(ask.policy, limit, |_| Tick::now()));
        return Ok(CallStart {
            terms,
            parents: Vec::new(),
        });
    }
    let Ask {
        policy,
        limit,
        grace,
        max_abandoned,
        upstream: mut parents,
        deadline: shared,
        inherit,
    } = ask;
    let start = clock.now();
    // What a bare context says. A call's deadline is its token's.
    let mut bare = Tick::NEVER;
    // The end of the call around this one; where it has none of its own, what is inherited is the end.
    let mut outer_end = Some(Tick::NEVER);
    let outer = if inherit { frame::current() } else { None };
    if let Some(outer) = outer {
        bare = outer.bare.on_clock(clock);
        outer_end = outer.end.map(|end| end.on_clock(clock));
        if !parents
            .iter()
            .any(|parent| parent.address() == outer.token.0.address())
        {
            parents.push(outer.token.0);
        }
    }
    let mut inherited = bare;
    for parent in &parents {
        inherited = inherited.min(parent.deadline().on_clock(clock));
    }
    let own = limit.map_or(Tick::NEVER, |limit| start.plus(limit));
    let bound = inherited.min(shared.on_clock(clock));
    // At equal times the deadline that was there first is the cause.
    let (deadline, cause) = if bound <= own && !bound.is_never() {
        (bound, Cause::DeadlineExceeded)
    } else {
        (own, Cause::TimedOut)
    };
    // Grace follows the signal; a call that gives none has none.
    let (cancels_at, end) = if policy.cancel {
        let outer_end = outer_end.unwrap_or(inherited);
        (deadline, deadline.plus(grace).min(outer_end))
    } else {
        (bare, deadline)
    };
    let terms = Terms::Full(Box::new(FullTerms {
        id: CallId::if_listened_to(&policy),
        policy,
        limit,
        grace,
        clock,
        start,
        deadline,
        cause,
        end,
        cancels_at,
        is_call: true,
    }));
    let refusal =
        if let Some((cause, reason)) = parents.iter().find_map(|parent| parent.cancellation()) {
            Some((cause.entering(), reason))
        } else if start >= deadline {
            Some((cause, None))
        } else if workers::abandoned::too_many(terms.name(), max_abandoned) {
            Some((Cause::NoWorker, None))
        } else {
            None
        };
    match refusal {
        Some((cause, reason)) => Err(terms.not_started(cause, reason)),
        None => Ok(CallStart { terms, parents }),
    }
}
