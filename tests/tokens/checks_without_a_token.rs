//! `check()` reports the call's token to code that has no token at hand.

use crate::call_error::CallError;
use crate::support;
use std::thread;
use std::time::{Duration, Instant};

use support::{EVERY_WAY, SOON, limit, short};
use timeout_runtime::{CallContext, CancelToken, Cause, Outcome, TimeoutError, check, timeout};

/// Runs until the free function `check` returns an error.
fn until_check_fails() -> TimeoutError {
    let begun = Instant::now();
    loop {
        if let Err(error) = check() {
            assert!(check().is_err(), "a cancellation is permanent");
            return error;
        }
        assert!(begun.elapsed() < SOON, "the call was not cancelled");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_free_functions_report_the_calls_token() {
    for way in EVERY_WAY {
        // With an operation that uses its token, and with one that creates no token before the
        // deadline.
        for takes_token in [true, false] {
            let outcome = way.run(&limit("asking::timed_out", short()), move |token| {
                let token = takes_token.then_some(token);
                assert!(check().is_ok(), "{way:?}");
                let error = until_check_fails();
                let token = token.unwrap_or_else(CancelToken::current);
                assert_eq!(token.cause(), Some(Cause::TimedOut), "{way:?}");
                assert_eq!(error.name(), "asking::timed_out", "{way:?}");
                Err::<(), _>(error)
            });
            assert!(matches!(outcome, Outcome::TimedOut(_)), "{way:?}");
        }
    }
}

#[test]
fn the_free_functions_report_a_cancelled_context() {
    let upstream = CancelToken::new();
    for way in EVERY_WAY {
        let token = upstream.child();
        let context = CallContext::detached().with_token(&token);
        let outcome = context.run(|| {
            way.run(&limit("asking::cancelled", 600_000), move |_| {
                assert!(check().is_ok());
                token.cancel();
                assert!(check().is_err());
                Err::<(), _>(check().unwrap_err())
            })
        });
        assert!(matches!(outcome, Outcome::Cancelled(_)), "{way:?}");
    }
}

#[test]
fn outside_any_call_the_free_functions_report_no_cancellation() {
    assert!(check().is_ok());
    let cancelled = CancelToken::new();
    cancelled.cancel();
    assert!(
        CallContext::detached()
            .with_token(&cancelled)
            .run(|| check().is_err())
    );
    assert!(check().is_ok());
}

#[timeout(name = "asking::first_poll", secs = 1)]
async fn never_pends() -> Result<(), CallError> {
    assert!(check().is_ok());
    until_check_fails();
    Err(CallError::Own)
}

/// A limit this short makes the call read the clock when it starts.
#[timeout(name = "asking::first_poll", ms = short())]
async fn never_pends_for_long() -> Result<(), CallError> {
    assert!(check().is_ok());
    until_check_fails();
    Err(CallError::Own)
}

#[test]
fn an_async_operation_that_never_yields_times_out_at_its_check() {
    let outcomes = [
        futures::executor::block_on(never_pends()),
        futures::executor::block_on(never_pends_for_long()),
    ];
    for outcome in outcomes {
        let Err(CallError::Timeout(error)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(error.is_timed_out());
    }
}

/// `cancel = false` hides the limit from the free functions too.
#[test]
fn with_cancel_false_the_free_functions_report_no_limit() {
    let policy = limit("asking::runs_on", 1).cancel_on_timeout(false);
    let outcome = policy.inline().outcome(|_| {
        thread::sleep(Duration::from_millis(20));
        assert!(check().is_ok());
        Ok::<_, TimeoutError>(())
    });
    assert!(matches!(outcome, Outcome::TimedOut(_)));
}
