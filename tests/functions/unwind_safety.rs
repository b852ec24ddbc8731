//! Public types and annotated futures are unwind safe, so that they can be used with
//! `catch_unwind`.

use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};
use std::time::Duration;

use timeout_runtime::{
    CallContext, CancelToken, Deadline, Outcome, Registration, Timeout, TimeoutError, timeout,
};

fn unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}

fn movable<T: UnwindSafe>(_: &T) {}

/// These types used to be `!UnwindSafe`, and so was every type with a field of them.
#[test]
fn tokens_contexts_policies_errors_and_outcomes_are_unwind_safe() {
    unwind_safe::<CancelToken>();
    unwind_safe::<Registration>();
    unwind_safe::<CallContext>();
    unwind_safe::<Deadline>();
    unwind_safe::<Timeout>();
    unwind_safe::<TimeoutError>();
    unwind_safe::<Outcome<u32, TimeoutError>>();
}

#[timeout(secs = 60)]
async fn inline(value: u32) -> Result<u32, TimeoutError> {
    std::future::ready(()).await;
    Ok(value)
}

#[timeout(secs = 60)]
async fn inline_with_token(value: u32) -> Result<u32, TimeoutError> {
    std::future::ready(()).await;
    cancel_token.check()?;
    Ok(value)
}

#[timeout(secs = 60, on_late = drop, max_abandoned = 3)]
async fn inline_with_on_late(value: u32) -> Result<u32, TimeoutError> {
    inline(value).await
}

#[timeout(secs = 60, run = "worker")]
async fn worker(value: u32) -> Result<u32, TimeoutError> {
    std::future::ready(()).await;
    Ok(value)
}

#[timeout(secs = 60, run = "task")]
async fn task(value: u32) -> Result<u32, TimeoutError> {
    std::future::ready(()).await;
    Ok(value)
}

#[timeout(secs = 60)]
fn returned(value: u32) -> impl Future<Output = Result<u32, TimeoutError>> + UnwindSafe {
    let _ = &cancel_token;
    std::future::ready(Ok(value))
}

/// An annotated future used to be `!UnwindSafe` whatever its body was.
#[test]
fn annotated_futures_are_unwind_safe_where_the_plain_ones_are() {
    movable(&inline(1));
    movable(&inline_with_token(1));
    movable(&inline_with_on_late(1));
    movable(&worker(1));
    movable(&task(1));
    movable(&returned(1));
}

#[test]
fn the_futures_of_a_policy_are_unwind_safe() {
    let timeout = Timeout::new("unwind_safety", Duration::from_secs(60)).unwrap();
    let op = |_: CancelToken| std::future::ready(Ok::<u32, TimeoutError>(1));
    movable(&timeout.call_async(op));
    movable(&timeout.outcome_async(op));
    movable(&timeout.as_task().call_async(op));
    movable(&timeout.on_worker().call_async(op));
}

#[test]
fn a_token_works_after_a_panic_that_it_was_captured_by() {
    let token = CancelToken::new();
    let captured = token.child();
    let panicked = catch_unwind(move || {
        captured.cancel();
        panic!("a panic of the closure");
    });
    assert!(panicked.is_err() && !token.is_cancelled());
    token.cancel();
    assert!(token.is_cancelled());
}
