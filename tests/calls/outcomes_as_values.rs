//! `Outcome`, `CallStatus`, `TimeoutError` and `Deadline` as values after a call has ended.

use crate::support;
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use support::{block_on, limit, short, short_limit, until_cancelled};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, Outcome, TimeoutError,
};

/// Each kind of outcome once, with its status.
fn every_ending<E>() -> [(CallStatus, Outcome<u32, E>); 6]
where
    E: From<String> + fmt::Debug + Send + 'static,
{
    let long = limit("outcomes::each", 60_000);
    let stops =
        |token: CancelToken| until_cancelled(&token).map_err(|error| error.to_string().into());
    [
        (CallStatus::Ok, long.outcome(|_| Ok(7))),
        (
            CallStatus::Failed,
            long.outcome(|_| Err("disk full".to_owned().into())),
        ),
        (
            CallStatus::TimedOut,
            limit("outcomes::each", short()).outcome(stops),
        ),
        (
            CallStatus::DeadlineExceeded,
            CallContext::current()
                .with_deadline(Deadline::after(short_limit()))
                .run(|| long.inline().outcome(stops)),
        ),
        (
            CallStatus::UpstreamCancelled,
            long.outcome(move |token| {
                token.cancel_with("shutting down");
                stops(token)
            }),
        ),
        (
            CallStatus::NotStarted,
            block_on(long.as_task().outcome_async(|_| async { Ok(7) })),
        ),
    ]
}

#[test]
fn an_outcome_is_exactly_one_of_six() {
    for (status, outcome) in every_ending::<String>() {
        assert_eq!(outcome.status(), status, "{outcome:?}");
        let error = outcome.timeout_error();
        let has_value = matches!(status, CallStatus::Ok | CallStatus::Failed);
        assert_eq!(error.is_none(), has_value, "{outcome:?}");
        assert_eq!(error.map_or(status, TimeoutError::status), status);
        assert_eq!(
            outcome.clone().success().is_some(),
            status == CallStatus::Ok
        );
        let folded = outcome.fold(
            |value| (CallStatus::Ok, value.to_string()),
            |error| (CallStatus::Failed, error),
            |error| (error.status(), error.to_string()),
        );
        assert_eq!(folded.0, status);
    }
}

#[test]
fn an_outcome_converts_into_the_result_of_a_call() {
    for (status, outcome) in every_ending() {
        let result: Result<u32, Box<dyn Error + Send + Sync>> = outcome.into();
        match status {
            CallStatus::Ok => assert_eq!(result.unwrap(), 7),
            CallStatus::Failed => assert_eq!(result.unwrap_err().to_string(), "disk full"),
            _ => {
                let error = *result.unwrap_err().downcast::<TimeoutError>().unwrap();
                assert_eq!(error.status(), status);
                let kind = match status {
                    CallStatus::TimedOut | CallStatus::DeadlineExceeded => ErrorKind::TimedOut,
                    _ => ErrorKind::Other,
                };
                assert_eq!(io::Error::from(error).kind(), kind, "{status}");
            }
        }
    }
}

#[test]
fn an_error_is_displayed_in_one_line() {
    let expected = [
        "timed out after ",
        "ran past its caller's deadline after ",
        "was cancelled after ",
        "was not started: `run = \"task\"` needs a Tokio runtime",
    ];
    let errors = every_ending::<String>()
        .into_iter()
        .filter_map(|(_, outcome)| outcome.timeout_error().cloned());
    for (error, expected) in errors.zip(expected) {
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("`outcomes::each` {expected}")),
            "{text}"
        );
        assert!(!text.contains('\n'), "{text}");
    }
}

#[test]
fn an_error_is_small_clonable_and_has_its_reason() {
    fn check<T: Clone + Send + Sync + 'static>() -> usize {
        size_of::<T>()
    }

    assert!(check::<TimeoutError>() <= 64);
    let reasons: Vec<_> = every_ending::<String>()
        .into_iter()
        .filter_map(|(_, outcome)| outcome.timeout_error().cloned())
        .map(|error| (error.cause(), error.source().map(ToString::to_string)))
        .collect();
    assert_eq!(
        reasons,
        [
            (Cause::TimedOut, None),
            (Cause::DeadlineExceeded, None),
            (Cause::Cancelled, Some("shutting down".into())),
            (Cause::NoRuntime, None),
        ]
    );
}

/// The `io::Error` keeps the timeout error as its source.
#[test]
fn an_io_error_holds_the_timeout_error() {
    let outcome = limit("outcomes::io", short())
        .inline()
        .outcome(|token| until_cancelled(&token));
    let error = io::Error::from(outcome.timeout_error().unwrap().clone());
    let inner = error.get_ref().unwrap().downcast_ref::<TimeoutError>();
    assert_eq!(inner.unwrap().name(), "outcomes::io");
}

#[test]
fn a_deadline_is_an_instant_or_never() {
    let now = Instant::now();
    let (soon, late) = (
        Deadline::at(now + Duration::from_secs(60)),
        Deadline::after(Duration::from_secs(120)),
    );
    assert_eq!(soon.min(late), soon);
    assert_eq!(late.min(soon), soon);
    assert_eq!(soon.min(Deadline::never()), soon);
    assert_eq!(Deadline::never().min(soon), soon);
    assert!(!soon.has_passed() && soon.remaining().unwrap() <= Duration::from_secs(60));
    assert!(late.remaining().unwrap() > Duration::from_secs(60));
    let past = Deadline::from(now);
    assert!(past.has_passed());
    assert_eq!(past.remaining(), Some(Duration::ZERO));
    assert_eq!(Deadline::after(Duration::MAX), Deadline::never());
    assert_eq!(Deadline::never().remaining(), None);
    assert!(!Deadline::never().has_passed());
    assert_eq!(Deadline::current(), Deadline::never());
}

/// A conversion to the system's clock keeps the time left.
#[tokio::test(start_paused = true)]
async fn a_deadline_of_virtual_time_follows_that_time() {
    let deadline = Deadline::after(Duration::from_secs(3600));
    tokio::time::advance(Duration::from_secs(3000)).await;
    assert_eq!(deadline.remaining(), Some(Duration::from_secs(600)));
    let inside = CallContext::current().with_deadline(deadline).run(|| {
        limit("outcomes::crossing", 86_400_000)
            .inline()
            .outcome(|token| Ok::<_, TimeoutError>(token.remaining()))
    });
    let left = inside.success().flatten().unwrap();
    assert!(
        left <= Duration::from_secs(600) && left > Duration::from_secs(500),
        "{left:?}"
    );
    tokio::time::advance(Duration::from_secs(600)).await;
    assert!(deadline.has_passed());
}
