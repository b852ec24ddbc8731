//! A cancellation that races with a link, a registration or a new wait is observed exactly once.
//!
//! The environment variable `TIMEOUT_TEST_ROUNDS` sets the number of rounds, 10 000 by default.

use crate::support;
use crate::waiters::Count;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use support::{EVERY_WAY, Gate, SOON, Way, block_on, in_runtime, limit, record, short};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, EventKind, Outcome, TimeoutError,
};

const LONG: u64 = 600_000;

fn rounds() -> usize {
    std::env::var("TIMEOUT_TEST_ROUNDS").map_or(10_000, |rounds| rounds.parse().unwrap())
}

/// A barrier for two threads without a lock.
#[derive(Default)]
struct Meeting(AtomicUsize);

impl Meeting {
    /// Waits for the other thread, in the given round.
    fn wait(&self, round: usize) {
        self.0.fetch_add(1, Ordering::SeqCst);
        let mut spins = 0;
        while self.0.load(Ordering::SeqCst) < 2 * (round + 1) {
            spins += 1;
            if spins % 1000 == 0 {
                thread::yield_now();
            }
            spin_loop();
        }
    }
}

/// Delays one of the two threads by a duration that changes each round.
fn stagger(round: usize) {
    (0..round % 61).for_each(|_| spin_loop());
}

/// Runs `other` on a token while another thread cancels it, `rounds` times; `check` examines each
/// result.
fn beside_cancel<T>(
    rounds: usize,
    mut other: impl FnMut(&CancelToken) -> T,
    check: impl FnMut(&CancelToken, T),
) {
    beside_cancel_of(rounds, |_| (), |token, ()| other(token), check);
}

/// The same with a value that `prepare` makes from the token before.
fn beside_cancel_of<P, T>(
    rounds: usize,
    mut prepare: impl FnMut(&CancelToken) -> P,
    mut other: impl FnMut(&CancelToken, P) -> T,
    mut check: impl FnMut(&CancelToken, T),
) {
    let start = Meeting::default();
    let (give, given) = mpsc::channel::<CancelToken>();
    let (done, is_done) = mpsc::channel();
    thread::scope(|scope| {
        let start = &start;
        scope.spawn(move || {
            for (round, token) in given.into_iter().enumerate() {
                start.wait(round);
                stagger(round);
                token.cancel();
                done.send(()).ok();
            }
        });
        // Moved in, so that the other thread ends with this one, even by a panic.
        let give = give;
        for round in 0..rounds {
            let token = CancelToken::new();
            let prepared = prepare(&token);
            give.send(token.clone()).unwrap();
            start.wait(round);
            stagger(round / 61);
            let made = other(&token, prepared);
            is_done.recv().unwrap();
            check(&token, made);
        }
    });
}

/// Waits for the first call, which a background thread makes.
fn wait_for_call(calls: &Count) {
    let start = Instant::now();
    while calls.get() == 0 {
        assert!(start.elapsed() < SOON, "the callback never ran");
        thread::yield_now();
    }
}

#[test]
fn a_token_linked_during_a_cancel_is_cancelled() {
    let other = CancelToken::new();
    beside_cancel(
        rounds(),
        |token| {
            let child = token.child();
            let below_two = CancelToken::linked([&other, token]);
            let grandchild = below_two.child();
            [child, below_two, grandchild]
        },
        |_, made| {
            for token in made {
                assert_eq!(token.cause(), Some(Cause::Cancelled));
            }
        },
    );
    assert!(!other.is_cancelled());
}

#[test]
fn callbacks_registered_during_a_cancel_run_once() {
    beside_cancel(
        rounds(),
        |token| {
            [(); 8].map(|()| {
                let calls = Arc::<Count>::default();
                let called = calls.clone();
                (token.on_cancel(move || called.add()), calls)
            })
        },
        |_, registered| {
            for (registration, calls) in registered {
                wait_for_call(&calls);
                assert!(!registration.unregister_and_wait());
                assert_eq!(calls.get(), 1);
            }
        },
    );
}

#[test]
fn a_callback_unregistered_during_a_cancel_runs_once_or_is_prevented() {
    beside_cancel(
        rounds(),
        |token| {
            let calls = Arc::<Count>::default();
            let called = calls.clone();
            (token.on_cancel(move || called.add()).unregister(), calls)
        },
        |_, (prevented, calls)| {
            if !prevented {
                wait_for_call(&calls);
            }
            assert_eq!(calls.get(), usize::from(!prevented));
        },
    );
}

#[test]
fn a_callback_unregistered_with_a_wait_has_run_or_never_will() {
    beside_cancel(
        rounds(),
        |token| {
            let calls = Arc::<Count>::default();
            let called = calls.clone();
            let registration = token.on_cancel(move || called.add());
            let is_prevented = registration.unregister_and_wait();
            (is_prevented, calls.get(), calls)
        },
        |_, (is_prevented, count, calls)| {
            assert_eq!(count, usize::from(!is_prevented));
            assert_eq!(calls.get(), count);
        },
    );
}

/// A value shows that no stop has run. After the return no stop can reach the next work.
#[test]
fn work_that_ends_during_a_cancel_returns_its_value_or_was_stopped() {
    let (mut values, mut errors) = (0, 0);
    let mut round = 0;
    beside_cancel(
        rounds(),
        |token| {
            let stops = Arc::<Count>::default();
            let stopped = stops.clone();
            let stop = move || {
                stopped.add();
                thread::yield_now();
            };
            round += 1;
            let result = token.interrupt_with(stop, || {
                // In some rounds the work ends while a stop runs, and in others right away.
                for _ in 0..round % 3 * 50 {
                    if stops.get() > 0 {
                        break;
                    }
                    thread::yield_now();
                }
            });
            // The function is gone, so this count is final.
            assert_eq!(Arc::strong_count(&stops), 1);
            (result, stops.get())
        },
        |_, (result, stops)| match result {
            Ok(()) => {
                assert_eq!(stops, 0);
                values += 1;
            }
            Err(error) => {
                assert!(error.is_cancelled());
                errors += 1;
            }
        },
    );
    assert!(values > 0 && errors > 0, "{values} values, {errors} errors");
}

#[test]
fn an_async_wait_started_during_a_cancel_is_ready_or_woken_once() {
    beside_cancel(
        rounds(),
        |token| {
            let calls = Arc::<Count>::default();
            let waker = Arc::clone(&calls).into();
            let mut wait = Box::pin(token.clone().cancelled_owned());
            let polled = wait.as_mut().poll(&mut Context::from_waker(&waker));
            (wait, polled, calls)
        },
        |_, (mut wait, polled, calls)| {
            assert_eq!(calls.get(), usize::from(polled.is_pending()));
            let waker = Arc::clone(&calls).into();
            let again = wait.as_mut().poll(&mut Context::from_waker(&waker));
            assert_eq!(again, Poll::Ready(()));
        },
    );
}

#[test]
fn a_blocking_wait_started_during_a_cancel_ends() {
    beside_cancel(
        rounds(),
        |token| {
            block_on(token.cancelled());
            token.child().wait_timeout(Duration::MAX)
        },
        |_, cause| assert_eq!(cause, Some(Cause::Cancelled)),
    );
}

/// The operation waits for its token: with a missed cancellation the call would not end.
fn a_call_made_beside_a_cancel(way: Way, rounds: usize) {
    let calls = limit("cancel_against_link::beside", LONG);
    beside_cancel(
        rounds,
        |token| {
            let context = CallContext::detached().with_token(token);
            context.run(|| match way {
                Way::SyncWorker | Way::SyncInline => {
                    way.run(&calls, |token| support::until_cancelled(&token))
                }
                _ => block_on(way.start(&calls, |token| async move {
                    token.cancelled().await;
                    token.check().map(|()| 7)
                })),
            })
        },
        |_, outcome| {
            let (Outcome::Cancelled(error) | Outcome::NotStarted(error)) = outcome else {
                panic!("{way:?}: {outcome:?}");
            };
            assert_eq!(error.cause(), Cause::Cancelled, "{way:?}");
        },
    );
}

#[test]
fn a_call_made_during_a_cancel_is_cancelled_or_not_started() {
    in_runtime(async {
        for way in EVERY_WAY {
            a_call_made_beside_a_cancel(way, rounds() / 5);
        }
    });
}

/// A second cancel used to return before the first one had reached all descendants.
#[test]
fn when_cancel_returns_the_whole_tree_is_cancelled() {
    beside_cancel_of(
        rounds() / 5,
        |token| {
            let tree = (0..64).map(|_| token.child().child());
            tree.collect::<Vec<_>>()
        },
        |token, tree| {
            token.cancel();
            tree.iter().all(CancelToken::is_cancelled)
        },
        |_, all| assert!(all),
    );
}

#[test]
fn no_call_starts_with_a_cancelled_token() {
    let recorder = record("cancel_against_link::refused");
    for (count, way) in EVERY_WAY.into_iter().enumerate() {
        let (live, cancelled) = (CancelToken::new(), CancelToken::new());
        cancelled.cancel();
        let born = [
            cancelled.child(),
            cancelled.child().child(),
            CancelToken::linked([&live, &cancelled]),
        ];
        assert!(
            born.iter()
                .all(|token| token.cause() == Some(Cause::Cancelled))
        );
        let ran = Gate::new();
        for token in born {
            let runs = ran.clone();
            let outcome = CallContext::detached().with_token(&token).run(|| {
                way.run(&limit("cancel_against_link::refused", LONG), move |_| {
                    runs.open();
                    Ok::<_, TimeoutError>(7)
                })
            });
            assert_eq!(outcome.status(), CallStatus::NotStarted, "{way:?}");
        }
        assert!(!ran.is_open(), "{way:?}");
        assert_eq!(
            recorder.kinds(),
            vec![EventKind::NotStarted(Cause::Cancelled); 3 * (count + 1)],
            "{way:?}"
        );
    }
}

#[test]
fn a_cancellation_reaches_descendants_only() {
    let root = CancelToken::new();
    let children: Vec<_> = (0..3).map(|_| root.child()).collect();
    let grandchildren: Vec<_> = children.iter().map(CancelToken::child).collect();
    children[1].cancel();
    assert!(!root.is_cancelled());
    for place in 0..3 {
        assert_eq!(children[place].is_cancelled(), place == 1);
        assert_eq!(grandchildren[place].is_cancelled(), place == 1);
    }
    grandchildren[0].cancel();
    assert!(!children[0].is_cancelled() && !root.is_cancelled());
    root.cancel();
    assert!(
        children
            .iter()
            .chain(&grandchildren)
            .all(CancelToken::is_cancelled)
    );
}

/// A callback used to run before the tokens above or beside it were cancelled.
#[test]
fn a_callback_sees_every_token_on_the_path_to_it_cancelled() {
    let (first, second) = (CancelToken::new(), CancelToken::new());
    let (left, right) = (first.child(), second.child());
    let below = CancelToken::linked([&left, &right]);
    let leaves: Vec<_> = (0..8).map(|_| below.child()).collect();
    let on_the_way = [vec![first.clone(), left.clone(), below.clone()], leaves].concat();
    let beside = [second.clone(), right.clone()];
    let (sender, seen) = mpsc::channel();
    for token in &on_the_way {
        let (on_the_way, beside) = (on_the_way.clone(), beside.clone());
        let sender = sender.clone();
        let callback = move || {
            let reached = on_the_way.iter().all(CancelToken::is_cancelled);
            let left_alone = !beside.iter().any(CancelToken::is_cancelled);
            sender.send(reached && left_alone).unwrap();
        };
        token.on_cancel(callback).forget();
    }
    drop(sender);
    first.cancel();
    for _ in &on_the_way {
        assert_eq!(seen.recv_timeout(SOON), Ok(true));
    }
    second.cancel();
    assert!(beside.iter().all(CancelToken::is_cancelled));
    // Each callback is dropped once it has run.
    let twice = seen.recv_timeout(SOON);
    assert_eq!(twice, Err(RecvTimeoutError::Disconnected));
}

/// The same for a deadline, which cancels the descendants of a call's token.
#[test]
fn a_callback_of_a_deadline_sees_the_whole_tree_cancelled() {
    for way in EVERY_WAY {
        let (sender, seen) = mpsc::channel();
        let timeout = limit("cancel_against_link::deadline", short()).with_grace(SOON);
        let outcome = way.run(&timeout, move |token| {
            let tree: Vec<_> = (0..8).map(|_| token.child().child()).collect();
            let all = tree.clone();
            let own = token.clone();
            let kept = tree[3].on_cancel(move || {
                let causes = all.iter().chain([&own]).map(CancelToken::cause);
                sender.send(causes.collect::<Vec<_>>()).unwrap();
            });
            let seen = seen.recv_timeout(SOON);
            drop(kept);
            Ok::<_, TimeoutError>(seen)
        });
        assert_eq!(
            outcome.success(),
            Some(Ok(vec![Some(Cause::TimedOut); 9])),
            "{way:?}"
        );
    }
}
