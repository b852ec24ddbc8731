//! Code deep inside a call that nobody has handed the token learns that it is to stop as if it had it.

use crate::support;
use std::thread;
use std::time::{Duration, Instant};

use support::{EVERY_WAY, SOON, limit, short};
use timeout_runtime::{
    CallContext, CancelToken, Cause, Outcome, TimeoutError, check, is_cancelled, timeout,
};

/// Runs until it is told to stop, as something with no token at hand learns it.
fn until_told() -> TimeoutError {
    let begun = Instant::now();
    loop {
        if let Err(error) = check() {
            assert!(is_cancelled(), "once told, for good");
            return error;
        }
        assert!(begun.elapsed() < SOON, "nobody has told");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn whoever_asks_without_a_token_is_told_what_the_token_says() {
    for way in EVERY_WAY {
        // Of an operation that takes its token, and of one that lets nobody make one before the deadline.
        for takes_token in [true, false] {
            let outcome = way.run(&limit("asking::timed_out", short()), move |token| {
                let token = takes_token.then_some(token);
                assert!(!is_cancelled() && check().is_ok(), "{way:?}");
                let error = until_told();
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
fn whoever_asks_without_a_token_is_told_of_a_cancelled_context() {
    let upstream = CancelToken::new();
    for way in EVERY_WAY {
        let token = upstream.child();
        let context = CallContext::detached().with_token(&token);
        let outcome = context.run(|| {
            way.run(&limit("asking::cancelled", 600_000), move |_| {
                assert!(!is_cancelled());
                token.cancel();
                assert!(is_cancelled());
                Err::<(), _>(check().unwrap_err())
            })
        });
        assert!(matches!(outcome, Outcome::Cancelled(_)), "{way:?}");
    }
}

#[test]
fn outside_any_call_nothing_is_to_stop() {
    assert!(!is_cancelled() && check().is_ok());
    let fired = CancelToken::new();
    fired.cancel();
    assert!(CallContext::detached().with_token(&fired).run(is_cancelled));
    assert!(!is_cancelled() && check().is_ok());
}

#[derive(Debug)]
enum Fail {
    Own,
    NoAnswer(TimeoutError),
}

impl From<TimeoutError> for Fail {
    fn from(error: TimeoutError) -> Self {
        Self::NoAnswer(error)
    }
}

#[timeout(name = "asking::first_poll", secs = 1)]
async fn never_pends() -> Result<(), Fail> {
    assert!(!is_cancelled());
    until_told();
    Err(Fail::Own)
}

/// So short a limit starts with a reading of the clock.
#[timeout(name = "asking::first_poll", ms = short())]
async fn never_pends_for_long() -> Result<(), Fail> {
    assert!(!is_cancelled());
    until_told();
    Err(Fail::Own)
}

#[test]
fn an_async_operation_that_never_pends_is_told_and_has_timed_out() {
    let endings = [
        futures::executor::block_on(never_pends()),
        futures::executor::block_on(never_pends_for_long()),
    ];
    for ending in endings {
        let Err(Fail::NoAnswer(error)) = ending else {
            panic!("{ending:?}");
        };
        assert!(error.is_timed_out());
    }
}

/// `cancel = false` holds the limit back from whoever asks, too.
#[test]
fn who_is_not_to_be_stopped_is_not_told() {
    let policy = limit("asking::runs_on", 1).cancel_on_timeout(false);
    let outcome = policy.outcome_inline(|_| {
        thread::sleep(Duration::from_millis(20));
        assert!(!is_cancelled() && check().is_ok());
        Ok::<_, TimeoutError>(())
    });
    assert!(matches!(outcome, Outcome::TimedOut(_)));
}
