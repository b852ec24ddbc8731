//! A limit ends the call with either value of `cancel`, and `cancel` decides whether it cancels the
//! token.

use crate::{concurrent, support};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use support::short;
use support::{ABANDONING, Gate, SOON, Way, assert_timed_out, in_runtime, limit, record};
use timeout_runtime::{CallContext, CancelToken, Cause, EventKind, Timeout, TimeoutError};

/// Receives the cause that the token has when the body returns.
type Note = mpsc::Sender<Option<Cause>>;

/// Runs until its token is cancelled or the gate opens.
fn body(
    opened: Gate,
    note: Note,
) -> impl FnOnce(CancelToken) -> Result<(), TimeoutError> + Send + 'static {
    move |token| {
        let release = token.child();
        let opens = release.clone();
        thread::spawn(move || {
            opened.wait();
            opens.cancel();
        });
        let _ = release.wait_timeout(Duration::MAX);
        note.send(token.cause()).unwrap();
        Ok(())
    }
}

/// Cause in the token of a body whose gate stays shut, so only the cancellation can end it.
fn cause_in_token(way: Way, timeout: Timeout) -> Option<Cause> {
    let (note, noted) = mpsc::channel();
    let outcome = concurrent::must_return(move || way.run(&timeout, body(Gate::new(), note)));
    assert_timed_out(way, &outcome);
    noted.recv_timeout(SOON).unwrap()
}

/// The limit used to end the wait without cancelling the token.
#[test]
fn with_cancel_the_limit_cancels_the_token() {
    for way in ABANDONING {
        let timeout = limit("cancel_or_not::with", short()).cancel_on_timeout(true);
        assert_eq!(
            cause_in_token(way, timeout),
            Some(Cause::TimedOut),
            "{way:?}"
        );
    }
}

/// Without the option, the limit must cancel the token.
#[test]
fn cancel_is_the_default() {
    for way in ABANDONING {
        let timeout = limit("cancel_or_not::default", short());
        assert_eq!(
            cause_in_token(way, timeout),
            Some(Cause::TimedOut),
            "{way:?}"
        );
    }
}

/// `cancel = false` must neither remove the limit nor let it cancel the token.
#[test]
fn without_cancel_the_call_ends_and_the_operation_continues() {
    for way in ABANDONING {
        let name = Box::leak(format!("cancel_or_not::without::{way:?}").into_boxed_str());
        let timeout = limit(name, short()).cancel_on_timeout(false);
        let recorder = record(name);
        let (note, noted) = mpsc::channel();
        let opened = Gate::new();
        let op = body(opened.clone(), note);
        let outcome = concurrent::must_return(move || way.run(&timeout, op));
        assert_timed_out(way, &outcome);
        // Long enough for a body whose token is cancelled to return.
        let early = noted.recv_timeout(Duration::from_millis(100));
        assert!(early.is_err(), "{way:?}: the body returned early");
        opened.open();
        assert_eq!(noted.recv_timeout(SOON), Ok(None), "{way:?}");
        assert_eq!(
            recorder.wait_for(2),
            [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
            "{way:?}"
        );
    }
}

/// Separating the token from the limit used to separate it from the enclosing token as well.
#[test]
fn without_cancel_an_enclosing_token_still_cancels_the_operation() {
    for way in ABANDONING {
        let outer = CancelToken::new();
        let context = CallContext::detached().with_token(&outer);
        let timeout = limit("cancel_or_not::outer", short()).cancel_on_timeout(false);
        let (note, noted) = mpsc::channel();
        // Only a cancellation can end this body.
        let op = body(Gate::new(), note);
        let outcome = concurrent::must_return(move || match way {
            Way::SyncWorker => context.run(|| timeout.outcome(op)),
            _ => in_runtime(context.scope(way.start(&timeout, |token| async { op(token) }))),
        });
        assert_timed_out(way, &outcome);
        assert!(
            noted.try_recv().is_err(),
            "{way:?}: the body returned early"
        );
        outer.cancel();
        let note = noted.recv_timeout(SOON).unwrap();
        assert_eq!(note, Some(Cause::Cancelled), "{way:?}");
    }
}
