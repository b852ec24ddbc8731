//! The errors and panics of an operation reach the caller unchanged.

use crate::{concurrent, panics, support};
use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use panics::{Shown, record_panics, shown_as};
use support::short;
use support::{
    EVERY_WAY, Gate, Way, assert_timed_out, block_on, eventually, limit, record, runtime,
    until_cancelled,
};
use timeout_runtime::{CancelToken, EventKind, Failure, Outcome, Timeout};

/// A user's error type whose values can be distinguished.
#[derive(Clone, Debug)]
struct StockError {
    identity: Arc<()>,
    source: Arc<io::Error>,
}

impl StockError {
    fn new() -> Self {
        Self {
            identity: Arc::default(),
            source: Arc::new(io::Error::other("disk")),
        }
    }
}

impl fmt::Display for StockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no stock")
    }
}

impl Error for StockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Payload(u32);

type CallOutcome = Outcome<(), StockError>;

fn name(what: &str, way: Way) -> &'static str {
    Box::leak(format!("failures_pass_through::{what}::{way:?}").into_boxed_str())
}

/// The caller used to get a copy of the error, or an error without its source.
#[test]
fn every_runner_returns_the_error_unchanged() {
    for way in EVERY_WAY {
        let name = name("error", way);
        let recorder = record(name);
        let error = StockError::new();
        let sent = error.clone();
        let outcome: CallOutcome = way.run(&limit(name, 60_000), |_| Err(sent));
        let Outcome::Failure(got) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert!(Arc::ptr_eq(&got.identity, &error.identity), "{way:?}");
        assert_eq!(got.source().unwrap().to_string(), "disk", "{way:?}");
        assert_eq!(
            recorder.kinds(),
            [EventKind::Failed(Failure::Error(
                format!("{error:?}").into()
            ))],
            "{way:?}"
        );
    }
}

/// Runs a call that panics and returns the payload of its panic.
fn unwinds(way: Way, timeout: &Timeout, op: fn(&CancelToken)) -> Box<dyn Any + Send> {
    catch_unwind(AssertUnwindSafe(|| {
        way.run(timeout, move |token| {
            op(&token);
            Ok::<_, StockError>(())
        })
    }))
    .expect_err("the caller unwinds")
}

/// The caller used to get another panic message, and the hook ran twice for one panic.
#[test]
fn every_runner_resumes_a_panic_with_its_message_and_runs_the_hook_once() {
    const LINE: u32 = line!() + 2;
    fn op(token: &CancelToken) {
        panic!("wanted: cancelled={}", token.is_cancelled());
    }

    record_panics();
    for (before, way) in EVERY_WAY.into_iter().enumerate() {
        let name = name("text", way);
        let recorder = record(name);
        let payload = unwinds(way, &limit(name, 60_000), op);
        assert_eq!(
            payload.downcast_ref::<String>().unwrap(),
            "wanted: cancelled=false",
            "{way:?}"
        );
        assert_eq!(
            recorder.kinds(),
            [EventKind::Failed(Failure::Panic(
                "wanted: cancelled=false".into()
            ))],
            "{way:?}"
        );
        let shown = Shown {
            text: Some("wanted: cancelled=false".into()),
            file: file!().into(),
            line: LINE,
        };
        assert_eq!(
            shown_as("wanted: cancelled=false"),
            vec![shown; before + 1],
            "{way:?}"
        );
    }
}

/// The payload used to be boxed twice, so a downcast failed.
#[test]
fn every_runner_resumes_a_panic_with_its_payload() {
    fn with_hook(_: &CancelToken) {
        panic_any(Payload(3));
    }
    fn without_hook(_: &CancelToken) {
        resume_unwind(Box::new(Payload(3)));
    }

    record_panics();
    for op in [with_hook, without_hook] {
        for way in EVERY_WAY {
            let name = name("payload", way);
            let recorder = record(name);
            let payload = unwinds(way, &limit(name, 60_000), op);
            assert_eq!(payload.downcast_ref(), Some(&Payload(3)), "{way:?}");
            assert!(
                matches!(recorder.kinds()[..], [EventKind::Failed(Failure::Panic(_))]),
                "{way:?}"
            );
        }
    }
}

/// A failure in time used to be a timeout if the caller was polled only after the limit.
#[test]
fn a_failure_in_time_counts_if_the_caller_is_polled_late() {
    fn polled_late<C: Future<Output = CallOutcome>>(gates: &[Gate; 2], call: C) -> CallOutcome {
        let [polled, after_the_limit] = gates;
        let mut call = pin!(call);
        let mut context = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
        polled.open();
        after_the_limit.wait();
        block_on(call)
    }

    record_panics();
    let runtime = runtime();
    concurrent::run_concurrently(4, 4, |row| {
        let (on_worker, panics) = (row & 1 != 0, row & 2 != 0);
        let what = format!("on worker: {on_worker}, panics: {panics}");
        let name = Box::leak(format!("failures_pass_through::{what}").into_boxed_str());
        let (timeout, recorder) = (limit(name, 3000), record(name));
        let gates = [Gate::new(), Gate::new()];
        let [polled, after_the_limit] = gates.clone();
        let op = move |_| async move {
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(3100));
                after_the_limit.open();
            });
            polled.wait();
            assert!(!panics, "wanted: in time");
            Err(StockError::new())
        };
        let _inside = runtime.enter();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if on_worker {
                polled_late(&gates, timeout.on_worker().outcome_async(op))
            } else {
                polled_late(&gates, timeout.as_task().outcome_async(op))
            }
        }));
        match outcome {
            Ok(Outcome::Failure(_)) => assert!(!panics, "{what}"),
            Err(_) => assert!(panics, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
        let kinds = recorder.kinds();
        assert!(
            matches!(kinds[..], [EventKind::Failed(_)]),
            "{what}: {kinds:?}"
        );
    });
}

/// An error after the cancellation is neither a failure nor lost.
#[test]
fn an_error_after_the_cancellation_is_a_timeout_and_a_late_event() {
    for way in EVERY_WAY {
        let name = name("stops", way);
        let recorder = record(name);
        let outcome: CallOutcome = way.run(&limit(name, short()), |token| {
            until_cancelled(&token).map_err(|_| StockError::new())?;
            Ok(())
        });
        assert_timed_out(way, &outcome);
        let kinds = recorder.wait_for(2);
        assert_eq!(kinds[0], EventKind::TimedOut, "{way:?}");
        let EventKind::AbandonedWorkerStopped(Failure::Error(text)) = &kinds[1] else {
            panic!("{way:?}: {kinds:?}");
        };
        assert!(text.contains("StockError"), "{way:?}: {text}");
    }
}

/// A panic after the limit used to be swallowed while the caller was still waiting.
#[test]
fn a_panic_after_the_limit_reaches_a_waiting_caller() {
    fn op(token: &CancelToken) {
        eventually("the token is cancelled", || token.is_cancelled());
        panic!("wanted: after the cancellation");
    }

    record_panics();
    for way in [Way::SyncInline, Way::AsyncInline] {
        let payload = unwinds(way, &limit(name("after", way), short()), op);
        assert_eq!(
            payload.downcast_ref(),
            Some(&"wanted: after the cancellation"),
            "{way:?}"
        );
    }
}
