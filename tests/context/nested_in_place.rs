//! Calls inside each other on one thread, none of which has a token at its start.

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Waker};

use timeout_runtime::{CancelToken, Cause, TimeoutError, check, timeout};

/// More calls inside each other than a thread keeps without an allocation.
const DEEP: u32 = 12;

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[timeout(name = "descend", secs = 60, run = "inline")]
fn descend(levels: u32, innermost: &mut dyn FnMut()) -> Result<(), TimeoutError> {
    match levels {
        0 => innermost(),
        _ => descend(levels - 1, innermost)?,
    }
    check()
}

#[timeout(name = "wait", secs = 60)]
async fn wait(tokens: Sender<CancelToken>) -> Result<(), TimeoutError> {
    tokens.send(CancelToken::current()).unwrap();
    pending().await
}

#[timeout(name = "pass on", secs = 60)]
async fn pass_on(tokens: Sender<CancelToken>) -> Result<(), TimeoutError> {
    wait(tokens).await
}

#[timeout(name = "wait without a token", secs = 60)]
async fn wait_without_a_token() -> Result<(), TimeoutError> {
    pending().await
}

// Fails if the token of a nested call is not linked below that of the call around it.
#[test]
fn a_token_from_the_first_poll_is_cancelled_with_the_calls_around() {
    #[timeout(name = "outer", secs = 60)]
    async fn outer() -> Result<CancelToken, TimeoutError> {
        let (sender, tokens) = channel();
        let mut nested = pin!(pass_on(sender));
        assert!(poll(nested.as_mut()).is_pending());
        let innermost = tokens.recv().unwrap();
        assert!(!innermost.is_cancelled());
        CancelToken::current().cancel();
        Ok(innermost)
    }

    let mut call = pin!(outer());
    let Poll::Ready(innermost) = poll(call.as_mut()) else {
        panic!("nothing here waits");
    };
    assert_eq!(innermost.unwrap().cause(), Some(Cause::Cancelled));
}

// Fails if a nested call that waits without a token is not linked at its first pending poll.
#[test]
fn a_nested_call_that_waits_ends_with_the_call_around() {
    #[timeout(name = "outer", secs = 60)]
    async fn outer() -> Result<Cause, TimeoutError> {
        let mut nested = pin!(wait_without_a_token());
        assert!(poll(nested.as_mut()).is_pending());
        CancelToken::current().cancel();
        Ok(nested.await.unwrap_err().cause())
    }

    let mut call = pin!(outer());
    let Poll::Ready(cause) = poll(call.as_mut()) else {
        panic!("the nested call ends with its caller");
    };
    assert_eq!(cause.unwrap(), Cause::Cancelled);
}

// Fails if a frame around the current one is lost, or found at a wrong depth.
#[test]
fn deep_calls_find_the_token_of_the_outermost_one() {
    let mut innermost = None;
    descend(DEEP, &mut || innermost = Some(CancelToken::current())).unwrap();
    let innermost = innermost.unwrap();
    // The limits of all calls are disarmed.
    assert!(innermost.deadline().remaining().is_none());

    let cancelled = descend(DEEP, &mut || CancelToken::current().cancel());
    assert_eq!(cancelled.unwrap_err().cause(), Cause::Cancelled);
    check().unwrap();
}

// Fails if a nested call begins although the call around it is cancelled.
#[test]
fn no_nested_call_begins_after_the_cancellation_of_the_call_around() {
    #[timeout(name = "outer", secs = 60, run = "inline")]
    fn outer() -> Result<(), TimeoutError> {
        CancelToken::current().cancel();
        descend(0, &mut || panic!("the operation began"))
    }

    assert_eq!(outer().unwrap_err().cause(), Cause::Cancelled);
}
