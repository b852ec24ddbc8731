//! The enclosing context holds inside a call, is passed to other threads explicitly, and is
//! restored when the call ends, whatever its outcome.

use crate::own_process::in_own_process;
use crate::{concurrent, panics, support};
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use concurrent::run_concurrently;
use futures::FutureExt;
use support::{
    ASYNC, EVERY_WAY, Gate, LONG, SOON, Way, assert_timed_out, block_on, limit, poll_once, short,
    until_cancelled,
};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, Outcome, Timeout, TimeoutError,
};
use tokio::runtime::{Builder, Runtime};

/// The observed context: its deadline, and whether cancelling the given token cancels it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    deadline: Deadline,
    is_cancelled: bool,
}

impl Seen {
    const NOTHING: Self = Self {
        deadline: Deadline::never(),
        is_cancelled: false,
    };

    /// Observes the current context; this cancels `mark`.
    fn by(mark: &CancelToken) -> Self {
        let deadline = Deadline::current();
        let tokens = [
            CancelToken::current(),
            CallContext::current().run(CancelToken::current),
        ];
        mark.cancel();
        let [is_cancelled, in_context] = tokens.map(|token| token.is_cancelled());
        assert_eq!(is_cancelled, in_context);
        assert_eq!(CallContext::current().run(Deadline::current), deadline);
        Self {
            deadline,
            is_cancelled,
        }
    }
}

/// A context with its own token and deadline, and the observation expected in it.
fn marked() -> (CallContext, CancelToken, Seen) {
    let (mark, deadline) = (
        CancelToken::new(),
        Deadline::after(Duration::from_millis(LONG)),
    );
    let context = CallContext::detached()
        .with_token(&mark)
        .with_deadline(deadline);
    let is_cancelled = true;
    (
        context,
        mark,
        Seen {
            deadline,
            is_cancelled,
        },
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutcomeKind {
    Success,
    Error,
    Panic,
    TimedOut,
    Cancelled,
    Dropped,
}

const EVERY_OUTCOME: [OutcomeKind; 6] = [
    OutcomeKind::Success,
    OutcomeKind::Error,
    OutcomeKind::Panic,
    OutcomeKind::TimedOut,
    OutcomeKind::Cancelled,
    OutcomeKind::Dropped,
];

impl OutcomeKind {
    fn operate(self, token: &CancelToken) -> Result<u32, &'static str> {
        match self {
            Self::Success => return Ok(7),
            Self::Error => {}
            Self::Panic => panic!("{}", panics::WANTED),
            Self::TimedOut => drop(until_cancelled(token)),
            Self::Cancelled => token.cancel(),
            Self::Dropped => unreachable!("it is asynchronous"),
        }
        Err("stopped")
    }

    /// Makes a call with this outcome. Returns `false` if such a call does not exist.
    async fn make(self, way: Way) -> bool {
        let ms = if self == Self::TimedOut {
            short()
        } else {
            LONG
        };
        let timeout = limit("context::inside", ms);
        let is_async = ASYNC.contains(&way);
        if self == Self::Dropped {
            if is_async {
                let mut call = way.start(&timeout, |_| pending::<Result<u32, TimeoutError>>());
                assert!(poll_once(&mut call, &Gate::new()).is_pending());
            }
            return is_async;
        }
        let ended = if is_async {
            let call = way.start(&timeout, move |token| async move {
                if self == Self::TimedOut {
                    token.cancelled().await;
                }
                self.operate(&token)
            });
            AssertUnwindSafe(call).catch_unwind().await
        } else {
            let call = || way.run(&timeout, move |token| self.operate(&token));
            catch_unwind(AssertUnwindSafe(call))
        };
        let is_as_asked = matches!(
            (self, &ended),
            (Self::Success, Ok(Outcome::Success(7)))
                | (Self::Error, Ok(Outcome::Failure(_)))
                | (Self::TimedOut, Ok(Outcome::TimedOut(_)))
                | (Self::Cancelled, Ok(Outcome::Cancelled(_)))
                | (Self::Panic, Err(_))
        );
        assert!(is_as_asked, "{way:?}: {self:?}: {ended:?}");
        true
    }
}

/// A runtime that runs every task on one thread.
fn single() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// A policy under which an operation may succeed after its cancellation.
fn graceful(name: &'static str) -> Timeout {
    limit(name, LONG).with_grace(Duration::from_millis(LONG))
}

#[test]
fn the_context_is_the_same_before_and_after_a_call() {
    panics::record_panics();
    let runtime = single();
    let _inside = runtime.enter();
    for way in EVERY_WAY {
        for kind in EVERY_OUTCOME {
            let (context, mark, seen) = marked();
            context.run(|| {
                block_on(kind.make(way));
                assert_eq!(Seen::by(&mark), seen, "{way:?}: {kind:?}");
            });
            assert_eq!(Seen::by(&mark), Seen::NOTHING, "{way:?}: {kind:?}");
            if block_on(kind.make(way)) {
                assert_eq!(Seen::by(&mark), Seen::NOTHING, "{way:?}: {kind:?}");
            }
        }
    }
}

/// The same inside a call, where the context is the enclosing call's.
#[test]
fn after_a_nested_call_the_enclosing_context_is_current_again() {
    panics::record_panics();
    let pairs = EVERY_WAY.map(|outer| EVERY_WAY.map(|inner| (outer, inner)));
    let pairs = pairs.concat();
    run_concurrently(5, pairs.len(), |row| {
        let (outer_way, way) = pairs[row];
        for kind in EVERY_OUTCOME {
            let outcome = outer_way.run(&graceful("context::around"), move |token| {
                let runtime = single();
                let before = (Deadline::current(), token.deadline());
                {
                    let _inside = runtime.enter();
                    block_on(kind.make(way));
                }
                runtime.shutdown_background();
                let after = (Deadline::current(), token.deadline());
                Ok::<_, TimeoutError>((before == after, Seen::by(&token).is_cancelled))
            });
            let found = outcome.success();
            assert_eq!(
                found,
                Some((true, true)),
                "{kind:?} {way:?} in {outer_way:?}"
            );
        }
    });
}

/// A call used to leave its context on the thread that polled or dropped it.
#[test]
fn a_call_leaves_no_context_on_an_executors_thread() {
    panics::record_panics();
    let runtime = single();
    for way in EVERY_WAY {
        for kind in EVERY_OUTCOME {
            let (context, mark, _) = marked();
            let call = context.scope(kind.make(way));
            block_on(runtime.spawn(call)).unwrap();
            let after = block_on(runtime.spawn(async move { Seen::by(&mark) }));
            assert_eq!(after.unwrap(), Seen::NOTHING, "{way:?}: {kind:?}");
        }
    }
}

/// Calls polled alternately on one thread see their own contexts.
#[test]
fn calls_polled_alternately_on_a_thread_keep_their_contexts() {
    let runtime = single();
    let _inside = runtime.enter();
    for way in [Way::AsyncInline, Way::AsyncTask] {
        let [one, two] = [1, 2].map(|factor| {
            let timeout = limit("context::turns", LONG * factor);
            way.start(&timeout, |token| async move {
                for _ in 0..50 {
                    assert_eq!(Deadline::current(), token.deadline());
                    tokio::task::yield_now().await;
                }
                Ok::<_, TimeoutError>(token.deadline())
            })
        });
        let (one, two) = block_on(async { futures::join!(one, two) });
        let [one, two] = [one, two].map(|outcome| outcome.success().unwrap());
        assert_eq!(one.min(two), one, "{way:?}");
        assert_ne!(one, two, "{way:?}");
        assert_eq!(Deadline::current(), Deadline::never(), "{way:?}");
    }
}

/// A call used to leave its context on a worker, where the next call saw it.
#[test]
fn a_call_leaves_no_context_on_a_worker() {
    in_own_process(|| {
        panics::record_panics();
        let runtime = single();
        let _inside = runtime.enter();
        for way in [Way::SyncWorker, Way::AsyncWorker] {
            for kind in EVERY_OUTCOME {
                let (context, mark, seen) = marked();
                context.run(|| block_on(kind.make(way)));
                // Callbacks run on background threads, outside any call.
                let (sender, found) = mpsc::channel();
                let outcome =
                    Way::SyncWorker.run(&limit("context::after", short()), move |token| {
                        let later = Deadline::current() != token.deadline();
                        let by = mark.clone();
                        let send = sender.clone();
                        token
                            .on_cancel(move || send.send((true, Seen::by(&by))).unwrap())
                            .forget();
                        sender.send((later, Seen::by(&mark))).unwrap();
                        until_cancelled(&token)
                    });
                assert_timed_out(way, &outcome);
                let (later, inside) = found.recv_timeout(SOON).unwrap();
                assert!(!later && !inside.is_cancelled, "{way:?}: {kind:?}");
                assert_eq!(inside.deadline.min(seen.deadline), inside.deadline);
                let (_, callback) = found.recv_timeout(SOON).unwrap();
                assert_eq!(callback, Seen::NOTHING, "{way:?}: {kind:?}");
            }
        }
    });
}

/// A thread or task started by an operation inherits the context only if passed on by `run` or
/// `scope`.
#[test]
fn a_context_is_inherited_by_threads_and_tasks_only_explicitly() {
    for way in EVERY_WAY {
        let outcome = way.run(&graceful("context::inherited"), move |token| {
            let look = || {
                let inner = limit("context::helper", LONG * 2);
                let outcome = inner.inline().outcome(Ok::<_, TimeoutError>);
                let inner = outcome.success().expect("no cancellation");
                (Deadline::current(), inner)
            };
            let context = CallContext::current();
            let inherited = context.clone();
            let runtime = single();
            let task = runtime.spawn(context.scope(async move { look() }));
            let bare_task = runtime.spawn(async move { look() });
            let seen = [
                thread::spawn(move || inherited.run(look)).join().unwrap(),
                block_on(task).unwrap(),
                thread::spawn(look).join().unwrap(),
                block_on(bare_task).unwrap(),
            ];
            runtime.shutdown_background();
            let deadline = Deadline::current();
            token.cancel();
            Ok::<_, TimeoutError>((deadline, seen))
        });
        let (deadline, seen) = outcome.success().expect("a result within the grace");
        for (n, (found, token)) in seen.into_iter().enumerate() {
            let is_inherited = n < 2;
            let expected = if is_inherited {
                deadline
            } else {
                Deadline::never()
            };
            assert_eq!(found, expected, "{way:?}, {n}");
            let cause = is_inherited.then_some(Cause::Cancelled);
            assert_eq!(token.cause(), cause, "{way:?}, {n}");
        }
    }
}

/// Cleanup continues after the enclosing call has ended.
#[test]
fn a_detached_context_is_not_bound_by_the_call() {
    for way in EVERY_WAY {
        for inner_way in EVERY_WAY {
            let outcome = way.run(&graceful("context::left"), move |token| {
                token.cancel();
                let inner = limit("context::cleanup", LONG * 100);
                let cleanup = CallContext::detached().run(|| {
                    assert_eq!(Deadline::current(), Deadline::never());
                    inner_way.run(&inner, |token| {
                        Ok::<_, TimeoutError>((token.remaining(), token.cause()))
                    })
                });
                let back = CancelToken::current().cause();
                let attached = inner_way.run(&inner, |_| Ok::<_, TimeoutError>(()));
                Ok::<_, TimeoutError>((cleanup.success(), back, attached.status()))
            });
            let what = format!("{inner_way:?} in {way:?}");
            let (cleanup, back, attached) = outcome.success().expect("a result within the grace");
            let (left, cause) = cleanup.expect("it was started");
            assert!(
                left > Some(Duration::from_millis(LONG * 50)),
                "{what}: {left:?}"
            );
            assert_eq!(cause, None, "{what}");
            assert_eq!(back, Some(Cause::Cancelled), "{what}");
            assert_eq!(attached, CallStatus::NotStarted, "{what}");
        }
    }
}
