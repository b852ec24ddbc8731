//! Whether a limit tells the operation, and that it ends the call either way.

use crate::{crowd, support};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use support::{APART, Gate, SOON, Way, in_runtime, limit, record};
use support::{short, short_limit};
use timeout_runtime::{CallContext, CancelToken, Cause, EventKind, Outcome, Timeout, TimeoutError};

/// How a body saw its call end, noted on the way out.
type Note = mpsc::Sender<Option<Cause>>;

/// Runs until its token fires, or until the gate opens, whichever comes first.
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

/// What the body of a call with a signal notes: its gate stays shut, so only the signal can end it.
fn note_of_told(way: Way, timeout: Timeout) -> Option<Cause> {
    let (note, noted) = mpsc::channel();
    let ending = crowd::ends(move || way.run(&timeout, body(Gate::new(), note)));
    assert_timed_out(way, &ending);
    noted.recv_timeout(SOON).unwrap()
}

#[track_caller]
fn assert_timed_out(way: Way, ending: &Outcome<(), TimeoutError>) {
    let Outcome::TimedOut(error) = ending else {
        panic!("{way:?}: {ending:?}");
    };
    assert!(error.elapsed() >= short_limit(), "{way:?}");
}

/// Guards against a limit that ends the wait and leaves the work running, although it should be told.
#[test]
fn with_cancel_the_operation_hears_of_its_limit() {
    for way in APART {
        let timeout = limit("cancel_or_not::with", short()).cancel_on_timeout(true);
        assert_eq!(note_of_told(way, timeout), Some(Cause::TimedOut), "{way:?}");
    }
}

/// Guards against a default that tells nobody.
#[test]
fn cancel_is_the_default() {
    for way in APART {
        let timeout = limit("cancel_or_not::default", short());
        assert_eq!(note_of_told(way, timeout), Some(Cause::TimedOut), "{way:?}");
    }
}

/// Guards against "do not cancel" taken for "no limit", and against a signal that comes all the same.
#[test]
fn without_cancel_the_call_ends_at_its_limit_and_the_operation_runs_on_unsignalled() {
    for way in APART {
        let name = Box::leak(format!("cancel_or_not::without::{way:?}").into_boxed_str());
        let timeout = limit(name, short()).cancel_on_timeout(false);
        let recorder = record(name);
        let (note, noted) = mpsc::channel();
        let opened = Gate::new();
        let op = body(opened.clone(), note);
        let ending = crowd::ends(move || way.run(&timeout, op));
        assert_timed_out(way, &ending);
        // A signal that comes all the same would end the body in this time.
        let early = noted.recv_timeout(Duration::from_millis(100));
        assert!(early.is_err(), "{way:?}: it ended by itself");
        opened.open();
        assert_eq!(noted.recv_timeout(SOON), Ok(None), "{way:?}");
        assert_eq!(
            recorder.wait_for(2),
            [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
            "{way:?}"
        );
    }
}

/// Guards against an operation that is cut off from everything when it is cut off from its limit.
#[test]
fn without_cancel_an_outer_token_still_reaches_the_operation() {
    for way in APART {
        let outer = CancelToken::new();
        let context = CallContext::detached().with_token(&outer);
        let timeout = limit("cancel_or_not::outer", short()).cancel_on_timeout(false);
        let (note, noted) = mpsc::channel();
        // Only a signal can end this body.
        let op = body(Gate::new(), note);
        let ending = crowd::ends(move || match way {
            Way::SyncWorker => context.run(|| timeout.outcome(op)),
            _ => in_runtime(context.scope(way.start(&timeout, |token| async { op(token) }))),
        });
        assert_timed_out(way, &ending);
        assert!(noted.try_recv().is_err(), "{way:?}: it ended by itself");
        outer.cancel();
        let note = noted.recv_timeout(SOON).unwrap();
        assert_eq!(note, Some(Cause::Cancelled), "{way:?}");
    }
}
