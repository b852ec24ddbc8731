//! Starts a call: computes its terms, or refuses it.

use crate::context::frame;
use crate::outcome::{Cause, TimeoutError};
use crate::terms::{FullTerms, PlainTerms, Terms};
use crate::time::{Clock, Deadline, Tick};
use crate::token::node::{Head, NodeRef, Watch};
use crate::token::{CancelToken, Owner};

use super::abandoned;
use super::options::CallOptions;
use super::view::Caller;

/// A call that may start, and the tokens that cancel it.
pub(crate) struct CallStart {
    pub(crate) terms: Terms,
    parents: Vec<NodeRef>,
}

impl CallStart {
    /// The head of the call's token, and the parents that the token must be linked to.
    pub(crate) fn head(self, caller: Caller) -> (Head, Vec<NodeRef>) {
        let watch = match caller {
            // On a test clock, the alarm of the token rings at the limit. It is set before the
            // operation starts.
            _ if self.terms.clock().is_for_tests() => Watch::Clocked,
            Caller::Parked if self.terms.cancels_at_deadline() => Watch::Watched,
            _ => Watch::Clocked,
        };
        let head = Head::new(Owner::Call(self.terms), watch);
        (head, self.parents)
    }

    /// The token of a call that runs in place.
    pub(crate) fn token(self) -> CancelToken {
        let owner = Owner::Call(self.terms);
        CancelToken(NodeRef::new(owner, Watch::Clocked, &self.parents))
    }
}

/// Computes the terms of a call that starts now.
///
/// Refuses the call if its deadline has passed, if one of its tokens is cancelled, or if too many
/// abandoned operations of its name are still running.
pub(crate) fn start(mut options: CallOptions, clock: Clock) -> Result<CallStart, TimeoutError> {
    options.update_limit();
    start_updated(options, clock)
}

/// As `start`, for options whose limit was updated.
pub(super) fn start_updated(options: CallOptions, clock: Clock) -> Result<CallStart, TimeoutError> {
    let plain_limit = options.only_limit().filter(|_| clock == Clock::Real);
    if let Some(limit) = plain_limit {
        let terms = Terms::Plain(PlainTerms::new(options.policy, limit, |_| Tick::now()));
        return Ok(CallStart {
            terms,
            parents: Vec::new(),
        });
    }
    let CallOptions {
        policy,
        limit,
        grace,
        max_abandoned,
        upstream: mut parents,
        deadline: shared,
        inherit,
    } = options;
    let start = clock.now();
    // The deadline of an enclosing context. The deadline of an enclosing call comes with its token.
    let mut context_deadline = Tick::NEVER;
    // The latest time at which the enclosing caller stops waiting. `None`: the inherited deadline
    // applies.
    let mut enclosing_end = Some(Tick::NEVER);
    let enclosing = if inherit { frame::current() } else { None };
    if let Some(enclosing) = enclosing {
        context_deadline = enclosing.context_deadline.inherited_on(clock);
        enclosing_end = enclosing.end.map(|end| end.inherited_on(clock));
        if !parents
            .iter()
            .any(|parent| parent.address() == enclosing.token.0.address())
        {
            parents.push(enclosing.token.0);
        }
    }
    let mut shared = shared;
    if shared.is_apart_from(clock) {
        // It passes by its own clock, so a token is cancelled then.
        parents.push(NodeRef::of_deadline(shared));
        shared = Deadline::never();
    }
    let mut inherited = context_deadline;
    for parent in &parents {
        inherited = inherited.min(parent.deadline().inherited_on(clock));
    }
    let own = limit.map_or(Tick::NEVER, |limit| start.plus(limit));
    let bound = inherited.min(shared.on_clock(clock));
    // At equal instants, the inherited or shared deadline is the cause.
    let (deadline, cause) = if bound <= own && !bound.is_never() {
        (bound, Cause::DeadlineExceeded)
    } else {
        (own, Cause::TimedOut)
    };
    // Grace starts at the cancellation. Without one (`cancel = false`) there is no grace.
    let end = if policy.cancel {
        let enclosing_end = enclosing_end.unwrap_or(inherited);
        deadline.plus(grace).min(enclosing_end)
    } else {
        deadline
    };
    let terms = Terms::Full(Box::new(FullTerms {
        id: policy.call_id(),
        policy,
        limit,
        grace,
        clock,
        order: clock.order(),
        start,
        deadline,
        cause,
        end,
        context_deadline,
    }));
    let refusal =
        if let Some((cause, reason)) = parents.iter().find_map(|parent| parent.cancellation()) {
            Some((cause.entering(), reason))
        } else if start >= deadline {
            Some((cause, None))
        } else if abandoned::too_many(terms.name(), max_abandoned) {
            Some((Cause::NoWorker, None))
        } else {
            None
        };
    match refusal {
        Some((cause, reason)) => {
            // The error that refuses the call is that of each cancelled parent.
            for parent in &parents {
                parent.note_error();
            }
            Err(terms.not_started(cause, reason))
        }
        None => Ok(CallStart { terms, parents }),
    }
}
