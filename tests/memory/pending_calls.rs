//! A pending async call holds its future, one alarm, and its token if the operation uses it.

use crate::in_use;
use crate::own_process::in_own_process;
use std::future::{Future, pending};
use std::task::{Context, Waker};
use std::time::Duration;

use timeout_runtime::{Deadline, TimeoutError, timeout};

/// Enough to make the memory that all calls share negligible.
const CALLS: usize = 10_000;

/// An alarm of 48 bytes, and its share of what the timer keeps.
const ALARM: usize = 56;

/// A token, and the terms of its call, with what a test clock needs.
const TOKEN: usize = 216;

#[timeout(name = "pending_calls::limit", secs = 3600)]
async fn with_limit() -> Result<(), TimeoutError> {
    pending().await
}

#[timeout(name = "pending_calls::deadline", deadline = deadline)]
async fn with_deadline(deadline: Deadline) -> Result<(), TimeoutError> {
    pending().await
}

#[timeout(name = "pending_calls::both", secs = 3600, deadline = deadline)]
async fn with_both(deadline: Deadline) -> Result<(), TimeoutError> {
    pending().await
}

#[timeout(name = "pending_calls::token", deadline = deadline)]
async fn with_token(deadline: Deadline) -> Result<(), TimeoutError> {
    cancel_token.check()?;
    pending().await
}

/// The bytes that each of many pending calls holds besides its future.
fn held<F: Future>(call: impl Fn(Deadline) -> F) -> usize {
    let deadline = Deadline::after(Duration::from_secs(3600));
    let mut calls = Vec::with_capacity(CALLS);
    let before = in_use();
    for _ in 0..CALLS {
        let mut call = Box::pin(call(deadline));
        let mut context = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
        calls.push(call);
    }
    (in_use() - before) / CALLS - size_of::<F>()
}

/// A call with a deadline used to hold a token, a second alarm and a box for the key of the first.
// Fails if a call creates a token that nothing uses, arms a second alarm, or boxes its key.
#[test]
fn a_pending_call_holds_one_alarm_and_a_token_if_it_uses_one() {
    in_own_process(|| {
        let kinds = [
            ("limit", held(|_| with_limit()), ALARM),
            ("deadline", held(with_deadline), ALARM),
            ("limit and deadline", held(with_both), ALARM),
            ("token", held(with_token), ALARM + TOKEN),
        ];
        for (kind, held, most) in kinds {
            assert!(held <= most, "{kind}: {held} bytes");
        }
    });
}
