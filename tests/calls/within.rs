//! `within` and its relatives: limits without a policy, named by their source location.

use crate::support;
use std::future::{Future, pending, ready};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use support::{Gate, SOON, block_on, poll_once, record, short_limit};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Deadline, EventKind, TimeoutError, TimeoutFutureExt,
    timeout, within, within_blocking,
};

#[test]
fn within_returns_the_output_of_a_future_in_time() {
    assert_eq!(block_on(within(SOON, ready(7))), Ok(7));
    assert_eq!(block_on(ready(7).within(SOON)), Ok(7));
    assert_eq!(block_on(ready(7).within(Duration::MAX)), Ok(7));
    assert_eq!(
        block_on(ready(7).within_deadline(Deadline::after(SOON))),
        Ok(7)
    );
    assert_eq!(
        block_on(ready(7).with_cancel_token(&CancelToken::new())),
        Ok(7)
    );
    assert_eq!(within_blocking(SOON, |_| 7), Ok(7));
}

#[test]
fn an_error_of_the_future_is_its_output() {
    let failed = block_on(within(SOON, ready(Err::<(), _>("refused"))));
    assert_eq!(failed, Ok(Err("refused")));
    assert_eq!(
        within_blocking(SOON, |_| Err::<(), _>("refused")),
        Ok(Err("refused"))
    );
}

#[test]
fn a_future_that_never_ends_is_dropped_at_the_limit() {
    let error = block_on(within(short_limit(), pending::<()>())).unwrap_err();
    assert!(
        error.is_timed_out() && error.elapsed() >= short_limit(),
        "{error}"
    );
    let error = block_on(pending::<()>().within(short_limit())).unwrap_err();
    assert!(
        error.is_timed_out() && error.limit() == Some(short_limit()),
        "{error}"
    );
    let shared = Instant::now() + short_limit();
    let error = block_on(pending::<()>().within_deadline(shared)).unwrap_err();
    assert!(
        error.is_deadline_exceeded() && Instant::now() >= shared,
        "{error}"
    );
    let error = within_blocking(short_limit(), |token| token.sleep(3 * SOON)).unwrap_err();
    assert!(
        error.is_timed_out() && error.elapsed() >= short_limit(),
        "{error}"
    );
}

#[test]
fn the_name_is_the_location_of_the_call() {
    const FIRST: u32 = line!() + 2;
    let errors = [
        block_on(within(Duration::ZERO, ready(()))).unwrap_err(),
        block_on(ready(()).within(Duration::ZERO)).unwrap_err(),
        block_on(ready(()).within_deadline(Instant::now())).unwrap_err(),
        within_blocking(Duration::ZERO, |_| ()).unwrap_err(),
    ];
    for (error, line) in errors.iter().zip(FIRST..) {
        let place = format!("{}:{line}:", file!());
        assert!(error.name().starts_with(&place), "{}", error.name());
        assert_eq!(error.status(), CallStatus::NotStarted);
    }
    let twice = [1, 2].map(|_| block_on(within(Duration::ZERO, ready(()))).unwrap_err());
    assert!(std::ptr::eq(twice[0].name(), twice[1].name()));
}

#[test]
fn a_refused_future_is_not_polled() {
    let never = || std::future::poll_fn(|_| -> Poll<()> { panic!("the future was polled") });
    let token = CancelToken::new();
    token.cancel_with("shutting down");
    let error = block_on(never().with_cancel_token(&token)).unwrap_err();
    assert!(error.is_cancelled() && error.status() == CallStatus::NotStarted);
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        "shutting down"
    );
    assert!(block_on(never().within(Duration::ZERO)).is_err());
    let over = Deadline::at(Instant::now());
    assert!(block_on(never().within_deadline(over)).is_err());
    let started = CallContext::detached()
        .with_token(&token)
        .run(|| within_blocking(SOON, |_| ()));
    assert_eq!(started.unwrap_err().status(), CallStatus::NotStarted);
}

#[test]
fn a_cancelled_token_ends_the_wait_after_one_more_poll() {
    let token = CancelToken::new();
    let mut polls = 0;
    {
        let counted = std::future::poll_fn(|_| {
            polls += 1;
            Poll::<()>::Pending
        });
        let mut call = pin!(counted.with_cancel_token(&token));
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
        token.cancel();
        let ended = poll_once(&mut call, &Gate::new());
        assert!(matches!(ended, Poll::Ready(Err(error)) if error.is_cancelled()));
    }
    assert_eq!(polls, 3);

    let token = CancelToken::new();
    let mut call = pin!(token.cancelled().with_cancel_token(&token));
    assert!(poll_once(&mut call, &Gate::new()).is_pending());
    token.cancel();
    assert_eq!(poll_once(&mut call, &Gate::new()), Poll::Ready(Ok(())));
}

#[timeout(name = "within::nested", secs = 3600)]
async fn nested() -> Result<Option<Duration>, TimeoutError> {
    Ok(Deadline::current().remaining())
}

#[test]
fn nested_calls_inherit_the_deadline_and_the_token() {
    let left = block_on(nested().within(SOON)).unwrap().unwrap();
    assert!(left.unwrap() <= SOON);
    let left = within_blocking(SOON, |_| block_on(nested()))
        .unwrap()
        .unwrap();
    assert!(left.unwrap() <= SOON);
    let inside = async { CancelToken::current() };
    let token = CancelToken::new();
    let mut call = pin!(
        async {
            let current = inside.await;
            token.cancel();
            current.is_cancelled()
        }
        .with_cancel_token(&token)
    );
    assert_eq!(poll_once(&mut call, &Gate::new()), Poll::Ready(Ok(true)));
}

#[test]
fn a_call_is_reported_once() {
    let call = || within(short_limit(), pending::<()>());
    let name = block_on(call()).unwrap_err().name();
    let recorder = record(name);
    block_on(call()).unwrap_err();
    let events = recorder.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(matches!(events[0].kind, EventKind::TimedOut));
}

#[test]
fn a_dropped_call_drops_its_future_and_cancels_its_token() {
    let mut token = None;
    {
        let mut call = pin!(within(SOON, async {
            token = Some(CancelToken::current());
            pending::<()>().await;
        }));
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
    }
    assert!(token.unwrap().is_cancelled());
}

#[test]
fn a_blocking_operation_that_ignores_its_token_is_abandoned() {
    let gate = Gate::new();
    let held = gate.clone();
    let error = within_blocking(short_limit(), move |_| held.wait()).unwrap_err();
    assert!(error.is_timed_out());
    gate.open();
}

#[test]
fn a_panic_reaches_the_caller() {
    let panic = std::panic::catch_unwind(|| within_blocking(SOON, |_| panic!("of the operation")));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"of the operation"));
    let call = within(SOON, async { panic!("of the future") });
    let panic = std::panic::catch_unwind(|| block_on(call));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"of the future"));
}

fn is_send<F: Future + Send>(_: &F) {}

#[test]
fn the_future_is_send_if_its_operation_is() {
    is_send(&within(SOON, ready(())));
    is_send(&ready(()).with_cancel_token(&CancelToken::new()));
}
