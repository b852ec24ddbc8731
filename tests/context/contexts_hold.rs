//! Calls in unusual contexts get the right outcome and restore the context afterwards. The contexts
//! have ended, never end, are very deep or wide, or change while their tokens are cancelled.

use crate::{concurrent, support};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use concurrent::{must_return, run_concurrently};
use support::{
    EVERY_WAY, Gate, SOON, Way, eventually, limit, record, short, short_limit, until_cancelled,
};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, EventKind, Outcome, TimeoutError,
};

const LONG: u64 = 600_000;

const MANY: usize = 200_000;

/// Makes a call in `context`. Returns its outcome and whether the operation ran.
fn call_in(
    context: &CallContext,
    way: Way,
    name: &'static str,
) -> (Outcome<u32, TimeoutError>, bool) {
    let ran = Gate::new();
    let runs = ran.clone();
    let outcome = context.run(|| {
        way.run(&limit(name, LONG), move |_| {
            runs.open();
            Ok(7)
        })
    });
    (outcome, ran.is_open())
}

/// Contexts in which no call may start, each with the cause.
fn contexts_that_are_over() -> Vec<(&'static str, CallContext, Cause)> {
    let detached = CallContext::detached;
    let cancelled = CancelToken::new();
    cancelled.cancel();
    let after_that = Deadline::after(Duration::from_millis(1));
    eventually("the deadline passes", || after_that.has_passed());
    let live = CancelToken::new();
    let now = Instant::now();
    let long_ago = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
    let past = detached().with_deadline(Deadline::at(long_ago));
    let timed_out = {
        let mut token = None;
        let outcome = limit("contexts_hold::before", 1).inline().outcome(|own| {
            token = Some(own.clone());
            until_cancelled(&own)
        });
        assert!(matches!(outcome, Outcome::TimedOut(_)));
        token.unwrap()
    };
    vec![
        (
            "cancelled",
            detached().with_token(&cancelled),
            Cause::Cancelled,
        ),
        (
            "one of two cancelled",
            detached().with_token(&live).with_token(&cancelled),
            Cause::Cancelled,
        ),
        ("past", past.clone(), Cause::DeadlineExceeded),
        (
            "zero",
            detached().with_deadline(Deadline::after(Duration::ZERO)),
            Cause::DeadlineExceeded,
        ),
        (
            "past, and never",
            past.with_deadline(Deadline::never()),
            Cause::DeadlineExceeded,
        ),
        (
            "cancelled, and then past",
            detached().with_token(&cancelled).with_deadline(after_that),
            Cause::Cancelled,
        ),
        // The limit of another call is a deadline here.
        (
            "the token of a call that timed out",
            detached().with_token(&timed_out),
            Cause::DeadlineExceeded,
        ),
    ]
}

/// An operation used to run after its deadline, or its call reported another cause.
#[test]
fn no_call_starts_in_a_context_that_has_ended() {
    for (what, context, cause) in contexts_that_are_over() {
        for way in EVERY_WAY {
            let recorder = record("contexts_hold::over");
            let (outcome, ran) = call_in(&context, way, "contexts_hold::over");
            assert_eq!(outcome.status(), CallStatus::NotStarted, "{what}, {way:?}");
            let error = Result::from(outcome).unwrap_err();
            assert_eq!(error.cause(), cause, "{what}, {way:?}");
            assert!(
                error.status() == CallStatus::NotStarted && !ran,
                "{what}, {way:?}"
            );
            assert_eq!(
                recorder.kinds(),
                [EventKind::NotStarted(cause)],
                "{what}, {way:?}"
            );
        }
    }
}

/// The same one call further in, where only the call in between inherits the context.
#[test]
fn no_nested_call_starts_after_the_context_has_ended() {
    for outer in EVERY_WAY {
        let request = CancelToken::new();
        let context = CallContext::detached().with_token(&request);
        let outcome = context.run(|| {
            let calls = limit("contexts_hold::outer", LONG).with_grace(SOON);
            outer.run(&calls, move |token| {
                request.cancel();
                assert!(token.is_cancelled());
                let inner = EVERY_WAY
                    .map(|way| call_in(&CallContext::current(), way, "contexts_hold::inner"));
                Ok::<_, TimeoutError>(inner)
            })
        });
        for (inner, ran) in outcome.success().unwrap() {
            assert_eq!(inner.status(), CallStatus::NotStarted, "{outer:?}");
            assert!(
                Result::from(inner).unwrap_err().is_cancelled() && !ran,
                "{outer:?}"
            );
        }
    }
}

/// Arithmetic on a deadline that never comes must not overflow.
#[test]
fn a_context_without_a_deadline_changes_no_limit() {
    let contexts = [
        CallContext::detached(),
        CallContext::detached().with_deadline(Deadline::never()),
        CallContext::detached().with_deadline(Deadline::after(Duration::MAX)),
        CallContext::detached().with_token(&CancelToken::new()),
    ];
    for (place, context) in contexts.iter().enumerate() {
        assert_eq!(context.run(Deadline::current), Deadline::never(), "{place}");
        assert_eq!(context.run(Deadline::current).remaining(), None, "{place}");
        run_concurrently(EVERY_WAY.len(), EVERY_WAY.len(), |number| {
            let way = EVERY_WAY[number];
            let calls = limit("contexts_hold::no_end", LONG).with_grace(Duration::MAX);
            let seen = context.run(|| {
                way.run(&calls, |token| {
                    Ok::<_, TimeoutError>([token.remaining(), Deadline::current().remaining()])
                })
            });
            for left in seen.success().unwrap() {
                let left = left.expect("the call has a limit");
                assert!(left <= Duration::from_millis(LONG), "{way:?}: {left:?}");
                assert!(left > Duration::from_millis(LONG / 2), "{way:?}: {left:?}");
            }
            let endless = limit("contexts_hold::endless", LONG);
            let endless = endless.with_limit(Duration::MAX).unwrap();
            let seen =
                context.run(|| way.run(&endless, |token| Ok::<_, TimeoutError>(token.remaining())));
            assert_eq!(seen.success(), Some(None), "{place}, {way:?}");
            let short = context.run(|| {
                way.run(&limit("contexts_hold::short", short()), |token| {
                    until_cancelled(&token)
                })
            });
            assert!(
                matches!(short, Outcome::TimedOut(_)),
                "{place}, {way:?}: {short:?}"
            );
        });
    }
}

/// A later deadline, or none, must not replace an earlier one.
#[test]
fn the_nearest_of_many_deadlines_holds() {
    for way in EVERY_WAY {
        let nearest = Deadline::after(short_limit());
        let far = || Deadline::after(Duration::from_secs(3600));
        let context = CallContext::detached()
            .with_deadline(far())
            .with_deadline(nearest)
            .with_deadline(Deadline::never())
            .with_deadline(far());
        assert_eq!(context.run(Deadline::current), nearest);
        let outcome = context.run(|| {
            let further = CallContext::current().with_deadline(far());
            further.run(|| {
                assert_eq!(Deadline::current(), nearest);
                way.run(&limit("contexts_hold::nearest", LONG), |token| {
                    until_cancelled(&token)
                })
            })
        });
        let error = Result::from(outcome).unwrap_err();
        assert!(error.is_deadline_exceeded(), "{way:?}: {error:?}");
        assert!(nearest.has_passed(), "{way:?}: early");
    }
}

/// Entering a context in another one must not recurse, keep the outer one or fail to restore it.
#[test]
fn any_number_of_contexts_can_be_entered_in_sequence() {
    let token = CancelToken::new();
    let outermost = CallContext::current();
    let mut context = CallContext::detached().with_deadline(Deadline::after(SOON));
    for _ in 0..MANY {
        context = context.run(CallContext::current);
    }
    assert!(context.run(Deadline::current).remaining().is_some());
    for _ in 0..MANY / 10 {
        context = context.with_token(&token).run(CallContext::current);
    }
    let (inside, _) = call_in(&context, Way::SyncInline, "contexts_hold::entered");
    assert_eq!(inside.success(), Some(7));
    token.cancel();
    assert!(context.run(CancelToken::current).is_cancelled());
    assert_eq!(outermost.run(Deadline::current), Deadline::never());
    assert_eq!(
        Deadline::current(),
        Deadline::never(),
        "the context is restored"
    );
}

/// An action of a callback on the tree of tokens that is being cancelled.
#[derive(Clone, Copy, Debug)]
enum Does {
    CancelRoot,
    CancelSibling,
    CancelWithReason,
    DropEverything,
    RegisterOnRoot,
    RegisterOnSibling,
    LinkMore,
    CallInside,
}

const EVERYTHING: [Does; 8] = [
    Does::CancelRoot,
    Does::CancelSibling,
    Does::CancelWithReason,
    Does::DropEverything,
    Does::RegisterOnRoot,
    Does::RegisterOnSibling,
    Does::LinkMore,
    Does::CallInside,
];

/// A tree around a call, with the last handles of most of its tokens.
struct Tree {
    root: CancelToken,
    sibling: CancelToken,
    children: Vec<CancelToken>,
}

impl Does {
    fn act(self, own: &CancelToken, tree: &Mutex<Option<Tree>>, report: &mpsc::Sender<()>) {
        let (root, sibling) = {
            let tree = tree.lock().unwrap();
            let tree = tree.as_ref().unwrap();
            (tree.root.clone(), tree.sibling.clone())
        };
        let reports = || {
            let report = report.clone();
            move || report.send(()).unwrap()
        };
        match self {
            Self::CancelRoot => root.cancel(),
            Self::CancelSibling => sibling.cancel(),
            Self::CancelWithReason => root.cancel_with("once more"),
            Self::DropEverything => {
                drop((root, sibling));
                drop(tree.lock().unwrap().take());
            }
            Self::RegisterOnRoot => root.on_cancel(reports()).forget(),
            Self::RegisterOnSibling => {
                let registration = sibling.on_cancel(reports());
                sibling.cancel();
                registration.forget();
            }
            Self::LinkMore => {
                let linked = CancelToken::linked([own, &root, &sibling]);
                let below = (0..100).fold(linked, |last, _| last.child());
                assert!(below.is_cancelled());
                below.on_cancel(reports()).forget();
            }
            Self::CallInside => {
                let context = CallContext::detached().with_token(own);
                let (refused, ran) = call_in(&context, Way::SyncWorker, "contexts_hold::refused");
                assert_eq!(refused.status(), CallStatus::NotStarted);
                let detached = CallContext::current();
                let (inside, _) = call_in(&detached, Way::SyncWorker, "contexts_hold::detached");
                assert_eq!((inside.success(), ran), (Some(7), false));
            }
        }
        report.send(()).unwrap();
    }

    /// Number of messages if the root, or the call's own limit, is the cause of the cancellation.
    fn messages(self, by_root: bool) -> usize {
        match self {
            Self::RegisterOnSibling | Self::LinkMore => 2,
            // On a root that is not cancelled, the callback waits.
            Self::RegisterOnRoot if by_root => 2,
            _ => 1,
        }
    }
}

/// A callback may change the tree around it: no lock is held, and no list or token is freed early.
#[test]
fn callbacks_may_change_the_tree_of_tokens_that_is_cancelled() {
    for does in EVERYTHING {
        for by_root in [true, false] {
            run_concurrently(EVERY_WAY.len(), EVERY_WAY.len(), |number| {
                let way = EVERY_WAY[number];
                let case = format!("{does:?}, by root: {by_root}, {way:?}");
                let (outcome, messages) = must_return(move || {
                    let root = CancelToken::new();
                    let tree = Tree {
                        sibling: root.child(),
                        children: (0..50).map(|_| root.child()).collect(),
                        root,
                    };
                    cancel_during(does, by_root, way, tree)
                });
                let expected = if by_root {
                    matches!(outcome, Outcome::Cancelled(_))
                } else {
                    matches!(outcome, Outcome::TimedOut(_))
                };
                assert!(expected, "{case}: {outcome:?}");
                assert_eq!(messages, does.messages(by_root), "{case}");
            });
        }
    }
}

/// Makes a call in the middle of `tree` that is cancelled and has a callback that acts.
/// Returns the outcome and the number of messages.
fn cancel_during(
    does: Does,
    by_root: bool,
    way: Way,
    tree: Tree,
) -> (Outcome<u32, TimeoutError>, usize) {
    let (root, sibling) = (tree.root.clone(), tree.sibling.clone());
    // These tokens are on both sides of the call in the root's list of children.
    let beside: Vec<_> = tree.children.iter().map(CancelToken::child).collect();
    let context = CallContext::detached().with_token(&root);
    let tree = Arc::new(Mutex::new(Some(tree)));
    let (report, reports) = mpsc::channel();
    let ms = if by_root { LONG } else { short() };
    let started = Gate::new();
    let canceller = by_root.then(|| {
        let (started, root) = (started.clone(), root.clone());
        std::thread::spawn(move || {
            started.wait();
            root.cancel();
        })
    });
    drop((root, sibling));
    let outcome = context.run(|| {
        way.run(&limit("contexts_hold::signalled", ms), move |token| {
            let own = token.clone();
            let acts = move || does.act(&own, &tree, &report);
            token.on_cancel(acts).forget();
            started.open();
            until_cancelled(&token)
        })
    });
    if let Some(canceller) = canceller {
        canceller.join().unwrap();
    }
    drop((context, beside));
    // The sender is dropped with the callback, or with the callback that it registered.
    let count = std::iter::from_fn(|| reports.recv_timeout(SOON / 4).ok()).count();
    (outcome, count)
}
