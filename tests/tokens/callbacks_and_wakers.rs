//! Callbacks and wakers that panic, block or re-enter change no outcome.

use crate::concurrent::at_once;
use crate::support;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use support::{
    ASYNC, EVERY_WAY, Gate, LONG, OnDrop, SOON, Way, assert_timed_out, block_on, eventually, limit,
    runtime, short, until_cancelled, waker,
};
use timeout_runtime::{
    CallContext, CancelToken, Cause, Deadline, Outcome, Registration, TimeoutError, timeout,
};

#[track_caller]
fn times_out(way: Way, name: &'static str) {
    let outcome = way.run(&limit(name, short()), |token| until_cancelled(&token));
    assert_timed_out(way, &outcome);
}

#[test]
fn a_panicking_callback_does_not_prevent_other_callbacks() {
    for way in EVERY_WAY {
        let (first, last) = (Gate::new(), Gate::new());
        let (one, two) = (first.clone(), last.clone());
        let outcome = way.run(&limit("callbacks::panics", short()), move |token| {
            token.on_cancel(move || one.open()).forget();
            token.on_cancel(|| panic!("a callback's panic")).forget();
            token.on_cancel(move || two.open()).forget();
            until_cancelled(&token)
        });
        assert_timed_out(way, &outcome);
        first.wait();
        last.wait();
    }
}

#[test]
fn a_blocking_callback_delays_neither_its_call_nor_others() {
    at_once(EVERY_WAY, |way| {
        let (entered, release) = (Gate::new(), Gate::new());
        let (is_in, held) = (entered.clone(), release.clone());
        let outcome = way.run(&limit("callbacks::blocks", short()), move |token| {
            token
                .on_cancel(move || {
                    is_in.open();
                    held.wait();
                })
                .forget();
            until_cancelled(&token)
        });
        assert_timed_out(way, &outcome);
        entered.wait();
        for other in EVERY_WAY {
            times_out(other, "callbacks::beside_a_block");
        }
        release.open();
    });
}

/// A callback may use its own token without restriction.
#[test]
fn a_callback_may_use_its_token_and_make_calls() {
    for way in EVERY_WAY {
        let (sender, done) = mpsc::channel();
        let registration = Arc::<Mutex<Option<Registration>>>::default();
        let own = registration.clone();
        let outcome = way.run(&limit("callbacks::re_enters", short()), move |token| {
            let inside = token.clone();
            let held = own.clone();
            *own.lock().unwrap() = Some(token.on_cancel(move || {
                inside.cancel();
                let child = inside.child();
                let ran = Arc::<AtomicBool>::default();
                let flag = ran.clone();
                drop(inside.on_cancel(move || flag.store(true, Ordering::SeqCst)));
                let me = held.lock().unwrap().take();
                let prevented = me.map(Registration::unregister);
                let detached = Deadline::current() == Deadline::never();
                times_out(Way::SyncWorker, "callbacks::in_callback");
                sender
                    .send((
                        inside.cause(),
                        child.cause(),
                        ran.load(Ordering::SeqCst),
                        prevented,
                        detached,
                    ))
                    .unwrap();
            }));
            until_cancelled(&token)
        });
        assert_timed_out(way, &outcome);
        let cause = Some(Cause::TimedOut);
        assert_eq!(
            done.recv_timeout(SOON),
            Ok((cause, cause, true, Some(false), true)),
            "{way:?}"
        );
    }
}

/// A callback that was never called is dropped with its token, possibly as the last step of a call.
#[test]
fn a_callback_whose_destructor_panics_changes_no_outcome() {
    for way in EVERY_WAY {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            way.run(&limit("callbacks::destructor", LONG), |token| {
                let kept = OnDrop(|| assert!(thread::panicking(), "a destructor's own panic"));
                token.on_cancel(move || drop(kept)).forget();
                Ok::<_, TimeoutError>(7)
            })
        }));
        assert!(
            matches!(outcome, Ok(Outcome::Success(7))),
            "{way:?}: the destructor's panic reached the caller"
        );
    }
}

#[test]
fn callbacks_run_on_background_threads_outside_any_call() {
    let token = CancelToken::new();
    let (sender, seen) = mpsc::channel();
    let below = token.child();
    let _kept = token.on_cancel(move || {
        let thread = thread::current().name().map(str::to_owned);
        let is_detached = Deadline::current() == Deadline::never();
        let found = (thread, below.is_cancelled(), is_detached);
        sender.send(found).unwrap();
        panic!("a callback's panic");
    });
    let around = CallContext::current().with_deadline(Deadline::after(SOON));
    around.run(|| token.cancel());
    let thread = Some("timeout-background".to_owned());
    assert_eq!(seen.recv_timeout(SOON), Ok((thread, true, true)));
}

type Call = Pin<Box<dyn Future<Output = Outcome<(), TimeoutError>> + Send>>;

/// A call that is never ready, polled once with `waker`.
fn polled(way: Way, name: &'static str, waker: &Waker) -> Call {
    let mut call = way.start(&limit(name, short()), |token| async move {
        token.cancelled().await;
        token.check()
    });
    let polled = call.as_mut().poll(&mut Context::from_waker(waker));
    assert!(polled.is_pending(), "{way:?}");
    call
}

#[test]
fn a_panicking_waker_stops_no_timer_and_no_worker() {
    let runtime = runtime();
    let _inside = runtime.enter();
    for way in ASYNC {
        let woken = Gate::new();
        let opens = woken.clone();
        let waker = waker(move || {
            opens.open();
            panic!("a waker's panic");
        });
        let call = polled(way, "wakers::panics", &waker);
        woken.wait();
        let outcome = block_on(call);
        assert_timed_out(way, &outcome);
        times_out(way, "wakers::after_a_panic");
    }
}

/// Dropping a call cancels its token; this used to wake the dropped call.
#[test]
fn the_waker_of_a_dropped_call_is_dropped_without_a_wake() {
    let runtime = runtime();
    let _inside = runtime.enter();
    // An inline operation would hold the waker too.
    for way in ASYNC.into_iter().filter(|way| way.abandons()) {
        let woken = Arc::new(Gate::new());
        let waker = Waker::from(Arc::clone(&woken));
        let calls = limit("wakers::dropped", 600_000);
        let mut call = way.start(&calls, |token| async move {
            token.cancelled().await;
            token.check()
        });
        let polled = call.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending(), "{way:?}");
        drop((call, waker));
        eventually("the waker is dropped", || Arc::strong_count(&woken) == 1);
        assert!(!woken.is_open(), "{way:?}");
    }
}

/// A waker that uses its own call's token and makes calls.
#[test]
fn a_waker_may_use_tokens_and_make_calls() {
    let runtime = runtime();
    let _inside = runtime.enter();
    for way in ASYNC {
        let token = Arc::<Mutex<Option<CancelToken>>>::default();
        let (given, found) = (token.clone(), Gate::new());
        let opens = found.clone();
        let waker = waker(move || {
            let token = given.lock().unwrap().take();
            if let Some(token) = token {
                token.cancel();
                drop(token.child());
                times_out(Way::SyncWorker, "wakers::in_waker");
                opens.open();
            }
        });
        let started = Gate::new();
        let running = started.clone();
        let mut call = way.start(&limit("wakers::re_enters", LONG), move |own| {
            *token.lock().unwrap() = Some(own.clone());
            running.open();
            async move {
                own.cancelled().await;
                own.check()
            }
        });
        let first = call.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(first.is_pending(), "{way:?}");
        started.wait();
        waker.wake_by_ref();
        found.wait();
        let outcome = block_on(call);
        assert!(
            matches!(outcome, Outcome::Cancelled(_)),
            "{way:?}: {outcome:?}"
        );
    }
}

/// A waker that blocks used to delay the timer thread, and with it the limits of all calls.
#[test]
fn a_blocking_waker_delays_no_other_call() {
    for way in [Way::AsyncInline, Way::AsyncWorker] {
        let (entered, release) = (Gate::new(), Gate::new());
        let (is_in, held) = (entered.clone(), release.clone());
        let waker = waker(move || {
            is_in.open();
            held.wait();
        });
        let blocked = polled(way, "wakers::blocks", &waker);
        entered.wait();
        let (sender, ended) = mpsc::channel();
        let others = thread::spawn(move || {
            for other in [Way::SyncWorker, Way::SyncInline] {
                times_out(other, "wakers::beside_a_block");
            }
            let call = Way::AsyncInline.start(&limit("wakers::beside_a_block", short()), |_| {
                pending::<Result<(), TimeoutError>>()
            });
            sender.send(block_on(call)).unwrap();
        });
        let outcome = ended.recv_timeout(SOON / 2);
        release.open();
        others.join().unwrap();
        assert!(
            matches!(outcome, Ok(Outcome::TimedOut(_))),
            "{way:?}: {outcome:?}"
        );
        drop(blocked);
    }
}

#[test]
fn a_panicking_waker_does_not_prevent_other_wakers() {
    let token = CancelToken::new();
    let mut waits = token.cancelled();
    let panics = waker(|| panic!("a waker's panic"));
    let first = Pin::new(&mut waits).poll(&mut Context::from_waker(&panics));
    assert_eq!(first, Poll::Pending);
    let woken = Gate::new();
    let mut other = token.cancelled();
    assert_eq!(support::poll_once(&mut other, &woken), Poll::Pending);
    let cancelled = catch_unwind(AssertUnwindSafe(|| token.cancel()));
    assert!(cancelled.is_ok());
    assert!(woken.is_open());
    assert_eq!(support::poll_once(&mut waits, &woken), Poll::Ready(()));
}

/// Registers a waker with `token` that blocks until `release` opens. Returns a gate that opens when
/// the waker is called, and the waiting future.
fn block_waker(token: &CancelToken, release: &Gate) -> (Gate, Pin<Box<impl Future + use<>>>) {
    let (entered, held) = (Gate::new(), release.clone());
    let is_in = entered.clone();
    let blocks = waker(move || {
        is_in.open();
        held.wait();
    });
    let mut cancelled = Box::pin(token.clone().cancelled_owned());
    let polled = cancelled.as_mut().poll(&mut Context::from_waker(&blocks));
    assert!(polled.is_pending());
    (entered, cancelled)
}

/// Waiters and callbacks of one token used to wait for each other's wakers.
#[test]
fn a_waker_that_blocks_at_a_deadline_delays_no_callback_and_no_waiting_thread() {
    let release = Gate::new();
    let around = CallContext::detached().with_deadline(Deadline::after(Duration::from_millis(200)));
    let token = around.run(CancelToken::current);
    let (_entered, _waiting) = block_waker(&token, &release);
    let called = Gate::new();
    let calls = called.clone();
    let child = token.child();
    child.on_cancel(move || calls.open()).forget();
    let cause = support::before_it_opens(&release, move || {
        called.wait();
        child.wait_timeout(Duration::MAX)
    });
    assert_eq!(cause, Some(Cause::DeadlineExceeded));
}

/// The last poll used to come before a waiter inside the operation was woken.
#[test]
fn the_last_poll_of_an_inline_call_sees_the_cancellation_although_another_waker_blocks() {
    let release = Gate::new();
    let upstream = CancelToken::new();
    let (entered, _waiting) = block_waker(&upstream, &release);
    let sees = Gate::new();
    let mut call = Box::pin(watching(&upstream, sees.clone()));
    assert!(support::poll_once(&mut call, &Gate::new()).is_pending());
    let canceller = {
        let upstream = upstream.clone();
        thread::spawn(move || upstream.cancel())
    };
    entered.wait();
    let polled = support::poll_once(&mut call, &Gate::new());
    release.open();
    canceller.join().unwrap();
    assert!(matches!(polled, Poll::Ready(Err(_))), "{polled:?}");
    assert!(sees.is_open(), "the last poll did not see the cancellation");
}

#[timeout(name = "wakers::watching", secs = 60, upstream = upstream)]
async fn watching(upstream: &CancelToken, sees: Gate) -> Result<(), TimeoutError> {
    // The operation polls a future only after that future's own waker was called.
    let mut futures = FuturesUnordered::new();
    futures.push(async {
        cancel_token.cancelled().await;
        sees.open();
    });
    while futures.next().await.is_some() {}
    pending().await
}
