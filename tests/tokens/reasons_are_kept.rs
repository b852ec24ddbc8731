//! The reason given to `cancel_with` is the source of every error from that cancellation.

use crate::support;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::mpsc;

use support::{EVERY_WAY, LONG, SOON, limit, short, until_cancelled};
use timeout_runtime::{CallContext, CallStatus, CancelToken, Cause, Outcome, TimeoutError};

#[derive(Debug, PartialEq, Eq)]
struct Shutdown(u32);

impl fmt::Display for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shutdown {}", self.0)
    }
}

impl Error for Shutdown {}

/// The reason in `error`, downcast to its own type.
fn reason(error: &TimeoutError) -> Option<u32> {
    assert_eq!(error.cause(), Cause::Cancelled);
    let source = error.source()?;
    Some(
        source
            .downcast_ref::<Shutdown>()
            .expect("the reason itself")
            .0,
    )
}

fn checked(token: &CancelToken) -> Option<u32> {
    reason(&token.check().unwrap_err())
}

#[test]
fn every_descendant_reports_the_reason() {
    let token = CancelToken::new();
    let other = CancelToken::new();
    let below = [
        token.clone(),
        token.child(),
        token.child().child(),
        CancelToken::linked([&other, &token]),
        CancelToken::linked([&other, &token]).child(),
    ];
    token.cancel_with(Shutdown(1));
    for below in &below {
        assert_eq!(checked(below), Some(1));
        assert_eq!(checked(&below.child()), Some(1));
        assert_eq!(reason(&below.sleep(SOON).unwrap_err()), Some(1));
    }
    assert!(!other.is_cancelled());
}

#[test]
fn the_first_reason_is_kept() {
    let token = CancelToken::new();
    let child = token.child();
    token.cancel_with(Shutdown(1));
    token.cancel_with(Shutdown(2));
    child.cancel_with(Shutdown(3));
    assert_eq!([checked(&token), checked(&child)], [Some(1); 2]);

    let plain = CancelToken::new();
    plain.cancel();
    plain.cancel_with(Shutdown(1));
    assert_eq!([checked(&plain), checked(&plain.child())], [None; 2]);

    let (above, own) = (CancelToken::new(), CancelToken::new().child());
    let below = CancelToken::linked([&above, &own]);
    own.cancel_with(Shutdown(4));
    above.cancel_with(Shutdown(5));
    assert_eq!([checked(&below), checked(&above)], [Some(4), Some(5)]);
}

#[test]
fn callbacks_and_waiters_read_the_reason() {
    let token = CancelToken::new();
    let (sender, found) = mpsc::channel();
    let (child, send) = (token.child(), sender.clone());
    token
        .on_cancel(move || send.send(checked(&child)).unwrap())
        .forget();
    let waiting = token.child();
    let waiter = std::thread::spawn(move || {
        let stopped = until_cancelled(&waiting);
        sender.send(reason(&stopped.unwrap_err())).unwrap();
    });
    token.cancel_with(Shutdown(1));
    waiter.join().unwrap();
    assert_eq!(found.iter().take(2).collect::<Vec<_>>(), [Some(1); 2]);
}

annotated! {
    mod below, [name = "reasons_are_kept::below", secs = 60, upstream = upstream],
    (upstream: CancelToken, inside: mpsc::Sender<CancelToken>) -> Result<u32, TimeoutError> {
        inside.send(cancel_token.clone()).unwrap();
        until_cancelled(&cancel_token)
    }
}

annotated! {
    mod fallback, [name = "reasons_are_kept::fallback", secs = 60, upstream = upstream, fallback = |error| Err(reason(&error))],
    (upstream: CancelToken, inside: mpsc::Sender<CancelToken>) -> Result<u32, Option<u32>> {
        inside.send(cancel_token.clone()).unwrap();
        until_cancelled(&cancel_token).map_err(|_| None)
    }
}

/// Cancels `token` once a call with it as upstream runs; returns the token of that call.
fn cancel_when_inside(
    token: &CancelToken,
    call: impl FnOnce(mpsc::Sender<CancelToken>) + Send,
) -> CancelToken {
    let (sender, inside) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| call(sender));
        let inside = inside.recv_timeout(SOON).unwrap();
        token.cancel_with(Shutdown(7));
        inside
    })
}

#[test]
fn a_calls_error_and_token_report_the_reason() {
    for way in EVERY_WAY {
        let request = CancelToken::new();
        let token = cancel_when_inside(&request, |inside| {
            let error = below::call(way, request.clone(), inside).unwrap_err();
            assert_ne!(error.status(), CallStatus::NotStarted, "{way:?}");
            assert_eq!(reason(&error), Some(7), "{way:?}");
            assert_eq!(reason(&error.clone()), Some(7), "{way:?}");
            let error = io::Error::from(error);
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
            assert_eq!(inner.and_then(reason), Some(7), "{way:?}");
        });
        assert_eq!(checked(&token), Some(7), "{way:?}");
    }
}

#[test]
fn a_fallback_receives_the_reason() {
    for way in EVERY_WAY {
        let request = CancelToken::new();
        cancel_when_inside(&request, |inside| {
            let result = fallback::call(way, request.clone(), inside);
            assert_eq!(result, Err(Some(7)), "{way:?}");
        });
    }
}

#[test]
fn a_call_that_is_not_started_reports_the_reason() {
    let request = CancelToken::new();
    request.cancel_with(Shutdown(7));
    for way in EVERY_WAY {
        let error = below::call(way, request.clone(), mpsc::channel().0).unwrap_err();
        assert_eq!(error.status(), CallStatus::NotStarted, "{way:?}");
        assert_eq!(reason(&error), Some(7), "{way:?}");
        let result = fallback::call(way, request.clone(), mpsc::channel().0);
        assert_eq!(result, Err(Some(7)), "{way:?}");

        let context = CallContext::detached().with_token(&request.child());
        let outcome = context.run(|| {
            way.run(&limit("reasons_are_kept::not_started", LONG), |_| {
                Ok::<_, TimeoutError>(())
            })
        });
        let Outcome::NotStarted(error) = &outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert_eq!(reason(error), Some(7), "{way:?}");
    }
}

/// Nested calls pass the reason on, in the errors of all of them.
#[test]
fn nested_calls_report_the_reason() {
    for outer_way in EVERY_WAY {
        for inner_way in EVERY_WAY {
            let (sender, seen) = mpsc::channel();
            let token = CancelToken::new();
            cancel_when_inside(&token, |inside| {
                let outer = limit("reasons_are_kept::outer", LONG);
                let outcome = CallContext::detached().with_token(&token).run(|| {
                    outer_way.run(&outer, move |_| {
                        let inner = limit("reasons_are_kept::inner", LONG);
                        let outcome = inner_way.run(&inner, move |token| {
                            inside.send(token.clone()).unwrap();
                            until_cancelled(&token)
                        });
                        sender
                            .send(outcome.timeout_error().and_then(reason))
                            .unwrap();
                        Result::from(outcome)
                    })
                });
                let found = outcome.timeout_error().and_then(reason);
                assert_eq!(found, Some(7), "{inner_way:?} in {outer_way:?}");
            });
            let found = seen.recv_timeout(SOON);
            assert_eq!(found, Ok(Some(7)), "{inner_way:?} in {outer_way:?}");
        }
    }
}

/// A deadline and a dropped call have no reason, even if `cancel_with` comes later.
#[test]
fn other_outcomes_have_no_reason() {
    for way in EVERY_WAY {
        let (sender, kept) = mpsc::channel();
        let outcome = way.run(&limit("reasons_are_kept::limit", short()), move |token| {
            let stopped = until_cancelled(&token);
            token.cancel_with(Shutdown(7));
            sender.send(token.check().unwrap_err()).unwrap();
            stopped
        });
        let error = outcome.timeout_error().unwrap();
        let inside = kept.recv_timeout(SOON).unwrap();
        for error in [error, &inside] {
            assert!(error.is_timed_out(), "{way:?}: {error:?}");
            assert!(error.source().is_none(), "{way:?}: {error:?}");
        }
    }
    let guarded = CancelToken::new();
    drop(guarded.drop_guard());
    assert_eq!(checked(&guarded), None);
}
