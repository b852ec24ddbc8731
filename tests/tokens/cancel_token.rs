//! `CancelToken` outside and inside calls: cancellation, equality, callbacks and waits.

use crate::concurrent::at_once;
use crate::support;
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::future::{Future, pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use support::{
    EVERY_WAY, Gate, SOON, before_it_opens, block_on, eventually, limit, poll_once, short,
};
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline, TimeoutError};

#[test]
fn a_token_is_cancelled_once_with_all_its_descendants() {
    let token = CancelToken::new();
    let below = [token.clone(), token.child(), token.child().child()];
    assert!(!token.is_cancelled() && token.cause().is_none() && token.check().is_ok());
    token.cancel();
    token.cancel();
    for token in &below {
        assert!(token.is_cancelled());
        assert_eq!(token.cause(), Some(Cause::Cancelled));
        assert!(token.check().unwrap_err().is_cancelled());
    }
}

#[test]
fn cancelling_a_child_does_not_cancel_its_parent_and_siblings() {
    let parent = CancelToken::new();
    let (child, sibling) = (parent.child(), parent.child());
    child.cancel();
    assert!(child.is_cancelled() && !parent.is_cancelled() && !sibling.is_cancelled());
    parent.cancel();
    assert!(sibling.is_cancelled());
}

#[test]
fn descendants_of_a_cancelled_token_start_cancelled() {
    let token = CancelToken::new();
    token.cancel_with("shutting down");
    for born in [
        token.child(),
        token.child().child(),
        CancelToken::linked([&CancelToken::new(), &token]),
    ] {
        let error = born.check().unwrap_err();
        assert!(error.is_cancelled());
        assert_eq!(error.source().unwrap().to_string(), "shutting down");
    }
}

#[test]
fn a_linked_token_is_cancelled_by_its_first_cancelled_parent() {
    for first in 0..3 {
        let parents = [(); 3].map(|()| CancelToken::new());
        let linked = CancelToken::linked(&parents);
        parents[first].cancel_with(format!("parent {first}"));
        parents[(first + 1) % 3].cancel_with("too late");
        let error = linked.check().unwrap_err();
        assert_eq!(
            error.source().unwrap().to_string(),
            format!("parent {first}")
        );
        assert!(!parents[(first + 2) % 3].is_cancelled());
    }
    assert!(!CancelToken::linked::<CancelToken>([]).is_cancelled());
}

#[test]
fn a_child_outlives_the_handles_of_its_parents() {
    let top = CancelToken::new();
    let bottom = top.child().child().child();
    top.cancel();
    assert!(bottom.is_cancelled());
}

#[test]
fn a_token_outside_any_call_has_a_generic_name_and_no_deadline() {
    let token = CancelToken::new();
    token.cancel();
    let error = token.check().unwrap_err();
    assert_eq!(error.name(), "token");
    assert_eq!((error.limit(), error.elapsed()), (None, Duration::ZERO));
    assert!(error.source().is_none());
    assert_eq!(CancelToken::new().deadline(), Deadline::never());
    assert_eq!(CancelToken::new().remaining(), None);
    assert_eq!(CancelToken::current().deadline(), Deadline::never());
}

/// Tokens used to have no equality, so a table of them needed keys of its own.
#[test]
#[allow(clippy::mutable_key_type)] // The key is the address of the token's state.
fn clones_are_equal_and_other_tokens_are_not() {
    let token = CancelToken::new();
    let (clone, child) = (token.clone(), token.child());
    let linked = CancelToken::linked([&token]);
    assert_eq!(clone, token);
    assert_ne!(child, token);
    assert_ne!(linked, token);
    assert_ne!(CancelToken::new(), CancelToken::new());

    let mut names = HashMap::from([(token.clone(), "token"), (child.clone(), "child")]);
    token.cancel();
    assert_eq!(names.remove(&clone), Some("token"));
    assert_eq!(names.remove(&linked), None);
    assert_eq!(names.remove(&child), Some("child"));
}

#[test]
#[allow(clippy::mutable_key_type)] // The key is the address of the token's state.
fn inside_a_call_its_token_equals_the_current_one() {
    for way in EVERY_WAY {
        let outcome = way.run(&limit("cancel_token::equal", 60_000), |token| {
            let tokens = HashSet::from([token, CancelToken::current(), CancelToken::current()]);
            Ok::<_, TimeoutError>(tokens.len())
        });
        assert_eq!(outcome.success(), Some(1), "{way:?}");
    }
    assert_ne!(CancelToken::current(), CancelToken::current());
}

/// Outside any call, `current` used to be documented as a token that is never cancelled.
#[test]
fn outside_any_call_each_current_token_is_a_new_one() {
    let token = CancelToken::current();
    token.cancel();
    assert!(!CancelToken::current().is_cancelled());
}

#[test]
fn remaining_or_is_at_most_the_given_maximum() {
    const MAX: Duration = Duration::from_secs(30);
    assert_eq!(CancelToken::new().remaining_or(MAX), MAX);
    for (left, in_time) in [
        (Duration::from_secs(3_600), MAX),
        (Duration::ZERO, Duration::ZERO),
    ] {
        let context = CallContext::detached().with_deadline(Deadline::after(left));
        assert_eq!(
            context.run(|| CancelToken::current().remaining_or(MAX)),
            in_time
        );
    }
    let context = CallContext::detached().with_deadline(Deadline::after(MAX / 2));
    let left = context.run(|| CancelToken::current().remaining_or(MAX));
    assert!(left <= MAX / 2, "{left:?}");
}

#[test]
fn errors_of_one_cancellation_are_equal() {
    let token = CancelToken::new();
    token.cancel_with("shutting down");
    let error = token.check().unwrap_err();
    assert_eq!(error, error.clone());
    assert_eq!(token.check(), Err(error.clone()));
    let other = CancelToken::new();
    other.cancel_with("shutting down");
    assert_ne!(other.check(), Err(error));
    let plain = CancelToken::new();
    plain.cancel();
    assert_ne!(plain.check(), other.check());
    assert_eq!(plain.check(), plain.child().check());
}

#[test]
fn a_token_of_a_call_has_its_name_and_deadline() {
    for way in EVERY_WAY {
        let timeout = limit("cancel_token::call", 60_000).with_grace(SOON);
        let outcome = way.run(&timeout, |token| {
            let current = CancelToken::current();
            token.cancel();
            let linked = CancelToken::linked([&token.child(), &CancelToken::new()]);
            let tokens = [current, token.child().child(), linked, token.clone()];
            Ok::<_, TimeoutError>((token.remaining(), tokens.map(|token| token.check())))
        });
        let (remaining, checked) = outcome.success().unwrap();
        let remaining = remaining.unwrap();
        assert!(
            remaining > Duration::from_secs(30) && remaining <= Duration::from_secs(60),
            "{way:?}: {remaining:?}"
        );
        for error in checked.map(Result::unwrap_err) {
            assert_eq!(error.name(), "cancel_token::call", "{way:?}");
            assert_eq!(error.limit(), Some(Duration::from_secs(60)), "{way:?}");
            assert!(error.is_cancelled(), "{way:?}");
        }
    }
}

#[test]
fn callbacks_run_once() {
    let (sender, ran) = mpsc::channel();
    let token = CancelToken::new();
    let kept: Vec<_> = (0..3)
        .map(|number| {
            let sender = sender.clone();
            token.on_cancel(move || sender.send(number).unwrap())
        })
        .collect();
    token.cancel();
    token.cancel();
    drop(sender);
    let mut numbers = [(); 3].map(|()| ran.recv_timeout(SOON).unwrap());
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2]);
    // Each callback is dropped once it has run.
    assert_eq!(ran.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
    assert!(kept.into_iter().all(|callback| !callback.unregister()));
}

#[test]
fn a_callback_on_a_cancelled_token_runs_immediately() {
    let token = CancelToken::new();
    token.cancel();
    let ran = Gate::new();
    let runs = ran.clone();
    let registration = token.on_cancel(move || runs.open());
    assert!(ran.is_open());
    assert!(!registration.unregister());
}

#[test]
fn an_unregistered_callback_never_runs() {
    let (count, token) = (Arc::new(AtomicUsize::new(0)), CancelToken::new());
    let register = || {
        let count = count.clone();
        token.on_cancel(move || {
            count.fetch_add(1, Ordering::SeqCst);
        })
    };
    let (dropped, unregistered, late, forgotten) = (register(), register(), register(), register());
    drop(dropped);
    assert!(unregistered.unregister());
    forgotten.forget();
    assert_eq!(
        Arc::strong_count(&count),
        3,
        "an unregistered callback is dropped"
    );
    token.cancel();
    eventually("both other callbacks have run", || {
        count.load(Ordering::SeqCst) == 2
    });
    assert!(!late.unregister());
}

/// `unregister` returns whether it prevented the callback, and does not wait for a running one.
#[test]
fn unregistering_a_running_callback_does_not_wait() {
    let (entered, release, token) = (Gate::new(), Gate::new(), CancelToken::new());
    let (is_in, held) = (entered.clone(), release.clone());
    let registration = token.on_cancel(move || {
        is_in.open();
        held.wait();
    });
    token.cancel();
    entered.wait();
    let is_prevented = before_it_opens(&release, move || registration.unregister());
    assert!(!is_prevented);
}

#[test]
fn blocking_waits_end_with_the_cancellation_or_the_timeout() {
    let token = CancelToken::new();
    let start = Instant::now();
    assert_eq!(token.wait_timeout(Duration::from_millis(20)), None);
    assert!(token.sleep(Duration::from_millis(20)).is_ok());
    assert!(start.elapsed() >= Duration::from_millis(40));
    assert_eq!(token.wait_timeout(Duration::ZERO), None);
    let waits = [token.clone(), token.child()].map(|token| {
        thread::spawn(move || {
            (
                token.wait_timeout(Duration::MAX),
                token.sleep(SOON).unwrap_err().cause(),
            )
        })
    });
    token.cancel();
    for wait in waits {
        assert_eq!(
            wait.join().unwrap(),
            (Some(Cause::Cancelled), Cause::Cancelled)
        );
    }
    assert_eq!(token.wait_timeout(Duration::ZERO), Some(Cause::Cancelled));
}

/// A stray unpark of the thread used to end the wait.
#[test]
fn a_blocking_wait_is_not_cut_short_by_stray_unparks() {
    let token = CancelToken::new();
    let sleeper = thread::spawn(move || {
        let start = Instant::now();
        token.sleep(Duration::from_millis(50)).unwrap();
        start.elapsed()
    });
    while !sleeper.is_finished() {
        sleeper.thread().unpark();
    }
    assert!(sleeper.join().unwrap() >= Duration::from_millis(50));
}

#[test]
fn async_waits_end_with_the_cancellation() {
    let token = CancelToken::new();
    let child = token.child();
    let woken = [(); 3].map(|()| Gate::new());
    let mut borrowed = token.cancelled();
    let mut owned = token.clone().cancelled_owned();
    let mut below = child.cancelled();
    assert_eq!(poll_once(&mut borrowed, &woken[0]), Poll::Pending);
    assert_eq!(poll_once(&mut owned, &woken[1]), Poll::Pending);
    assert_eq!(poll_once(&mut below, &woken[2]), Poll::Pending);
    token.cancel();
    assert!(woken.iter().all(Gate::is_open));
    assert_eq!(poll_once(&mut borrowed, &woken[0]), Poll::Ready(()));
    assert_eq!(poll_once(&mut owned, &woken[1]), Poll::Ready(()));
    assert_eq!(poll_once(&mut below, &woken[2]), Poll::Ready(()));
    block_on(token.cancelled());
}

/// A future that moved to another task wakes the task that polled it last.
#[test]
fn an_async_wait_wakes_the_task_that_polled_last() {
    let token = CancelToken::new();
    let mut wait = token.cancelled();
    let (before, after) = (Gate::new(), Gate::new());
    assert!(poll_once(&mut wait, &before).is_pending());
    assert!(poll_once(&mut wait, &after).is_pending());
    token.cancel();
    assert!(after.is_open() && !before.is_open());
}

/// A waker keeps its task alive, so a waker that stays registered would leak the task.
#[test]
fn a_dropped_wait_leaves_no_waker_registered() {
    let token = CancelToken::new();
    let woken = Arc::new(Gate::new());
    let waker = Waker::from(Arc::clone(&woken));
    let held = Arc::strong_count(&woken);
    let mut context = Context::from_waker(&waker);
    let mut wait = Box::pin(token.cancelled());
    assert!(wait.as_mut().poll(&mut context).is_pending());
    assert!(Arc::strong_count(&woken) > held);
    drop(wait);
    assert_eq!(Arc::strong_count(&woken), held);
    token.cancel();
    assert!(!woken.is_open());
}

#[test]
fn run_until_cancelled_returns_the_first_of_both() {
    let token = CancelToken::new();
    assert_eq!(block_on(token.run_until_cancelled(ready(7))), Some(7));
    let mut cut = pin!(token.run_until_cancelled(pending::<()>()));
    let woken = Gate::new();
    let waker = woken.waker();
    let mut context = Context::from_waker(&waker);
    assert_eq!(cut.as_mut().poll(&mut context), Poll::Pending);
    token.cancel();
    assert!(woken.is_open());
    assert_eq!(cut.as_mut().poll(&mut context), Poll::Ready(None));
}

/// Requires a future that borrows nothing.
fn is_static<T: Send + 'static>(value: T) -> T {
    value
}

#[test]
fn run_until_cancelled_owned_borrows_nothing() {
    let token = CancelToken::new();
    let ready = is_static(token.clone().run_until_cancelled_owned(ready(7)));
    assert_eq!(block_on(ready), Some(7));
    let cut = is_static(token.clone().run_until_cancelled_owned(pending::<()>()));
    let mut cut = pin!(cut);
    let woken = Gate::new();
    assert!(poll_once(&mut cut, &woken).is_pending());
    token.cancel();
    woken.wait();
    assert_eq!(block_on(cut), None);
    let panics = std::future::poll_fn(|_| -> Poll<()> { panic!("the future was polled") });
    assert_eq!(block_on(token.run_until_cancelled_owned(panics)), None);
}

/// A future used to be polled once although the token was cancelled before.
#[test]
fn run_until_cancelled_does_not_poll_with_a_cancelled_token() {
    let token = CancelToken::new();
    token.cancel();
    let future = std::future::poll_fn(|_| -> Poll<()> { panic!("the future was polled") });
    assert_eq!(block_on(token.run_until_cancelled(future)), None);
    assert_eq!(block_on(token.run_until_cancelled(ready(7))), None);
}

#[test]
fn a_guard_cancels_when_it_is_dropped_unless_it_is_disarmed() {
    let token = CancelToken::new();
    drop(token.drop_guard());
    assert_eq!(token.cause(), Some(Cause::Cancelled));

    let kept = CancelToken::new();
    let same = kept.drop_guard().disarm();
    assert!(!kept.is_cancelled());
    same.cancel();
    assert!(kept.is_cancelled());

    let unwound = CancelToken::new();
    let guarded = unwound.clone();
    let panic = catch_unwind(AssertUnwindSafe(move || {
        let _guard = guarded.drop_guard();
        panic!("out of paper")
    }));
    assert!(panic.is_err() && unwound.is_cancelled());
}

/// For an inline sync call, the waiters themselves observe the deadline.
#[test]
fn a_deadline_reaches_every_kind_of_wait() {
    at_once(EVERY_WAY, |way| {
        for wait in [
            |token: &CancelToken| token.wait_timeout(Duration::MAX),
            |token: &CancelToken| {
                block_on(token.cancelled());
                token.cause()
            },
            |token: &CancelToken| {
                let (sender, ran) = mpsc::channel();
                let _kept = token.on_cancel(move || sender.send(()).unwrap());
                ran.recv_timeout(SOON).unwrap();
                token.cause()
            },
            |token: &CancelToken| {
                let child = token.child();
                block_on(child.cancelled());
                child.cause()
            },
            |token: &CancelToken| {
                while !token.is_cancelled() {
                    thread::yield_now();
                }
                token.cause()
            },
        ] {
            let timeout = limit("cancel_token::waits", short()).with_grace(SOON);
            let outcome = way.run(&timeout, move |token| Ok::<_, TimeoutError>(wait(&token)));
            assert_eq!(outcome.success(), Some(Some(Cause::TimedOut)), "{way:?}");
        }
    });
}

#[test]
fn cancelling_after_the_deadline_does_not_change_the_cause() {
    let deadline = Deadline::after(Duration::from_millis(5));
    let context = CallContext::detached().with_deadline(deadline);
    let token = context.run(CancelToken::current);
    thread::sleep(Duration::from_millis(10));
    // Neither a caller nor the timer thread has checked the token so far.
    token.cancel_with("too late");
    for token in [token.child(), token] {
        let error = token.check().unwrap_err();
        assert!(error.is_deadline_exceeded(), "{error:?}");
        assert!(error.source().is_none(), "{error:?}");
    }
}

#[test]
fn tokens_and_registrations_implement_debug() {
    let token = CancelToken::new();
    let named = r#"CancelToken { name: "token", cause: None }"#;
    assert_eq!(format!("{token:?}"), named);
    assert_eq!(
        format!("{:?}", token.on_cancel(|| ())),
        "Registration { .. }"
    );
    token.cancel();
    assert!(
        format!("{token:?}").ends_with("cause: Some(Cancelled) }"),
        "{token:?}"
    );
}
