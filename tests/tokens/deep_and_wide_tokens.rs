//! Token trees of any depth and width are linked, cancelled, checked and dropped without recursion
//! and in linear time.

use crate::{concurrent, support};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use concurrent::run_concurrently;
use support::{EVERY_WAY, Gate, SOON, Way, eventually, limit, poll_once, short};
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline, Outcome, TimeoutError};

const MANY: usize = 200_000;

const LONG: u64 = 600_000;

/// Runs `work` on a stack too small for a recursion over many tokens.
#[track_caller]
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(256 << 10).spawn(work);
    thread.unwrap().join().unwrap();
}

/// Runs one step. Panics if it takes as long as a step of quadratic cost would.
#[track_caller]
fn step<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let value = work();
    let took = start.elapsed();
    assert!(took < SOON, "{what} took {took:?}");
    value
}

/// A token with a long chain of descendants.
fn chain() -> Vec<CancelToken> {
    let mut tokens = vec![CancelToken::new()];
    for place in 0..MANY {
        tokens.push(tokens[place].child());
    }
    tokens
}

/// The first and the last token of a chain; the last one keeps the others alive.
fn leaf() -> (CancelToken, CancelToken) {
    let mut tokens = chain();
    let last = tokens.pop().unwrap();
    (tokens.swap_remove(0), last)
}

/// Cancelling or dropping a chain used to take a stack frame for each link.
#[test]
fn a_chain_is_cancelled_and_dropped_in_every_order() {
    type Drops = fn(Vec<CancelToken>);
    let orders: [(&str, bool, Drops); 5] = [
        ("root first", true, |tokens| {
            tokens.into_iter().for_each(drop);
        }),
        (
            "leaf first",
            true,
            |mut tokens| {
                while tokens.pop().is_some() {}
            },
        ),
        ("all together", false, drop),
        (
            "all but the leaf, and then the leaf",
            false,
            |mut tokens| {
                let leaf = tokens.pop();
                drop(tokens);
                drop(leaf);
            },
        ),
        ("every other one first", true, |tokens| {
            let (even, odd): (Vec<_>, Vec<_>) = tokens
                .into_iter()
                .enumerate()
                .partition(|(place, _)| place % 2 == 0);
            drop(even);
            drop(odd);
        }),
    ];
    for (order, cancels, drops) in orders {
        on_a_small_stack(move || {
            let tokens = step("linking", chain);
            if cancels {
                step("cancelling", || tokens[0].cancel());
                assert!(tokens.iter().all(CancelToken::is_cancelled), "{order}");
                assert_eq!(tokens[MANY].cause(), Some(Cause::Cancelled), "{order}");
            }
            step(order, || drops(tokens));
        });
    }
}

/// Cancelling used to recurse into each child, and dropping used to search a child among its
/// siblings.
#[test]
fn many_children_are_cancelled_and_dropped_in_every_order() {
    type Drops = fn(CancelToken, Vec<CancelToken>);
    let orders: [(&str, bool, Drops); 3] = [
        ("root first", true, |root, children| {
            drop(root);
            drop(children);
        }),
        ("first to last", false, |_root, children| drop(children)),
        (
            "last to first",
            false,
            |_root, mut children| {
                while children.pop().is_some() {}
            },
        ),
    ];
    for (order, cancels, drops) in orders {
        on_a_small_stack(move || {
            let root = CancelToken::new();
            let children: Vec<_> = step("linking", || (0..MANY).map(|_| root.child()).collect());
            if cancels {
                step("cancelling", || root.cancel());
                assert!(children.iter().all(CancelToken::is_cancelled), "{order}");
            }
            step(order, || drops(root, children));
        });
    }
}

/// A token must not keep its own list of ancestors, nor walk to one of them more than once.
#[test]
fn a_token_with_many_parents_is_cancelled_by_any_of_them() {
    on_a_small_stack(|| {
        let parents: Vec<_> = (0..MANY).map(|_| CancelToken::new()).collect();
        let below = step("linking", || CancelToken::linked(&parents));
        assert!(!below.is_cancelled());
        assert_eq!(step("asking", || below.deadline()), Deadline::never());
        parents[MANY / 2].cancel();
        assert!(below.is_cancelled());
        assert!(!parents[0].is_cancelled() && !parents[MANY - 1].is_cancelled());
        step("dropping", || drop((below, parents)));
    });
}

/// Wakers and callbacks must not run within the walk over the chain.
#[test]
fn waiters_along_a_chain_are_woken_without_recursion() {
    on_a_small_stack(|| {
        let tokens = chain();
        let (ran, woken) = (Arc::<AtomicUsize>::default(), Gate::new());
        let kept: Vec<_> = tokens
            .iter()
            .map(|token| {
                let ran = Arc::clone(&ran);
                token.on_cancel(move || {
                    ran.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        let mut waits = tokens[MANY].cancelled();
        assert!(poll_once(&mut waits, &woken).is_pending());
        step("cancelling", || tokens[0].cancel());
        eventually("all callbacks have run", || {
            ran.load(Ordering::SeqCst) == MANY + 1
        });
        assert!(woken.is_open());
        assert!(poll_once(&mut waits, &woken).is_ready());
        assert!(kept.into_iter().all(|one| !one.unregister()));
    });
}

/// A context used to take a stack frame for each token added to it.
#[test]
fn a_context_takes_any_number_of_tokens() {
    on_a_small_stack(|| {
        let (first, last) = (CancelToken::new(), CancelToken::new());
        let mut context = CallContext::detached().with_token(&first);
        step("adding", || {
            for _ in 0..MANY {
                context = context.clone().with_token(&last);
            }
        });
        assert_eq!(
            step("asking", || context.run(Deadline::current)),
            Deadline::never()
        );
        let calls = limit("deep_and_wide_tokens::in_context", LONG);
        let inside = context.run(|| calls.inline().outcome(|_| Ok::<_, TimeoutError>(7)));
        assert_eq!(inside.success(), Some(7));
        first.cancel();
        assert!(context.run(CancelToken::current).is_cancelled());
        let inside = context.run(|| calls.inline().outcome(|_| Ok::<_, TimeoutError>(7)));
        assert!(matches!(inside, Outcome::NotStarted(_)), "{inside:?}");
        step("dropping", || drop(context));
    });
}

/// A call in `context` that runs until its token is cancelled; `stop` runs once the operation has
/// started.
fn stopped(way: Way, context: &CallContext, stop: impl FnOnce() + Send + 'static) {
    let started = Gate::new();
    let under_way = started.clone();
    let canceller = thread::spawn(move || {
        under_way.wait();
        stop();
    });
    let outcome = context.run(|| {
        way.run(
            &limit("deep_and_wide_tokens::stopped", LONG),
            move |token| {
                started.open();
                support::until_cancelled(&token)
            },
        )
    });
    canceller.join().unwrap();
    assert!(
        matches!(outcome, Outcome::Cancelled(_)),
        "{way:?}: {outcome:?}"
    );
}

fn succeeds(way: Way, context: &CallContext) {
    let outcome = context.run(|| {
        let calls = limit("deep_and_wide_tokens::succeeds", LONG);
        way.run(&calls, |token| {
            token.check()?;
            Ok::<_, TimeoutError>(token.remaining())
        })
    });
    let left = outcome.success().flatten().unwrap();
    assert!(left <= Duration::from_millis(LONG), "{way:?}: {left:?}");
}

/// Neither the start nor the end of a call may recurse up a chain.
#[test]
fn a_call_at_the_end_of_a_chain_has_its_normal_outcome() {
    on_a_small_stack(|| {
        let (root, last) = leaf();
        let context = CallContext::detached().with_token(&last);
        drop(last);
        step("calls", || {
            for way in EVERY_WAY {
                succeeds(way, &context);
            }
        });
        step("cancelled calls", || {
            let under_way = Arc::new(Barrier::new(EVERY_WAY.len()));
            thread::scope(|scope| {
                for way in EVERY_WAY {
                    let (context, root, under_way) = (&context, &root, Arc::clone(&under_way));
                    scope.spawn(move || {
                        let root = root.clone();
                        stopped(way, context, move || {
                            if under_way.wait().is_leader() {
                                root.cancel();
                            }
                        });
                    });
                }
            });
        });
        for way in EVERY_WAY {
            let outcome = context.run(|| {
                let calls = limit("deep_and_wide_tokens::refused", LONG);
                way.run(&calls, |_| Ok::<_, TimeoutError>(()))
            });
            assert!(
                matches!(outcome, Outcome::NotStarted(_)),
                "{way:?}: {outcome:?}"
            );
        }
    });
}

/// A token must not search the whole chain for its deadline: its call knows the nearest one.
#[test]
fn a_call_at_the_end_of_a_chain_knows_its_deadline() {
    let (_root, last) = leaf();
    let context = CallContext::detached().with_token(&last);
    context.run(|| {
        let calls = limit("deep_and_wide_tokens::deadline", LONG);
        let outcome = Way::SyncInline.run(&calls, |token| {
            let deadline = token.deadline();
            let below = token.child();
            let is_same = step("deadlines", || {
                (0..2_000).all(|_| token.deadline() == deadline && below.deadline() == deadline)
            });
            Ok::<_, TimeoutError>(is_same && deadline != Deadline::never())
        });
        assert!(matches!(outcome, Outcome::Success(true)), "{outcome:?}");
    });
}

/// A call must not search for itself among its siblings, nor drop them with itself.
#[test]
fn a_call_among_many_siblings_has_its_normal_outcome() {
    let root = CancelToken::new();
    let mut siblings: Vec<_> = (0..MANY).map(|_| root.child()).collect();
    let context = CallContext::detached().with_token(&root);
    for way in EVERY_WAY {
        step("calls", || (0..100).for_each(|_| succeeds(way, &context)));
    }
    assert!(siblings.iter().all(|child| !child.is_cancelled()));
    for (place, way) in EVERY_WAY.into_iter().enumerate() {
        // Cancelling a sibling does not reach the call; cancelling the parent does.
        let sibling = siblings.swap_remove(place);
        let below = root.child();
        let context = CallContext::detached().with_token(&below);
        step("a cancelled call", || {
            stopped(way, &context, move || {
                sibling.cancel();
                below.cancel();
            });
        });
    }
    assert!(siblings.iter().all(|child| !child.is_cancelled()));
    step("the last call", || {
        let cancels = root.clone();
        stopped(Way::SyncWorker, &context, move || cancels.cancel());
    });
    assert!(siblings.iter().all(CancelToken::is_cancelled));
}

/// A deadline used to reach nearby tokens only.
#[test]
fn a_deadline_reaches_the_end_of_a_chain() {
    let calls = limit("deep_and_wide_tokens::deadline", 5 * short()).with_grace(SOON);
    run_concurrently(EVERY_WAY.len(), EVERY_WAY.len(), |place| {
        let way = EVERY_WAY[place];
        let outcome = way.run(&calls, |token| {
            let mut last = token.child();
            for _ in 0..MANY / 4 {
                last = last.child();
            }
            assert_eq!(last.deadline(), token.deadline());
            eventually("the last token is cancelled", || last.is_cancelled());
            Ok::<_, TimeoutError>((last.cause(), token.cause()))
        });
        let cause = Some(Cause::TimedOut);
        assert_eq!(outcome.success(), Some((cause, cause)), "{way:?}");
    });
}
