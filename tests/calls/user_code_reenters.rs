//! User code may make calls, add and remove listeners, register callbacks and cancel
//! tokens anywhere, without a deadlock or endless recursion.

use crate::{concurrent, panics, support, user_code};
use std::error::Error;
use std::fmt;
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::task::{Wake, Waker};
use std::time::{Duration, SystemTime};

use support::{
    ABANDONING, ASYNC, EVERY_WAY, Gate, LONG, SOON, TIMED, assert_timed_out, block_on, limit,
    record, short, until_cancelled,
};
use timeout_runtime::{CallStatus, CancelToken, EventKind, Outcome, Timeout, TimeoutError};
use user_code::{Act, caught, works};

/// The calls of a clock emit events that need timestamps too, which used to recurse for ever.
// Fails if the clock of a policy is read for calls that the clock makes itself.
#[test]
fn a_clock_that_makes_calls_of_its_own_policy_does_not_recurse_for_ever() {
    for way in EVERY_WAY {
        concurrent::must_return(move || {
            static CALLS: AtomicUsize = AtomicUsize::new(0);

            let recorder = record("reenters::clock");
            let own = Arc::<OnceLock<Timeout>>::default();
            let (policy, before) = (Arc::clone(&own), CALLS.load(Ordering::SeqCst));
            let timeout = limit("reenters::clock", LONG).with_clock(move || {
                CALLS.fetch_add(1, Ordering::SeqCst);
                Act::ReEnters.act();
                let inside = policy
                    .get()
                    .map(|own| way.run(own, |_| Ok::<_, TimeoutError>(7)));
                assert!(inside.is_some_and(|outcome| outcome.status() == CallStatus::Ok));
                SystemTime::UNIX_EPOCH
            });
            own.set(timeout.clone()).unwrap();
            let outcome = way.run(&timeout, |_| Ok::<_, TimeoutError>(7));
            assert_eq!(outcome.status(), CallStatus::Ok, "{way:?}: {outcome:?}");
            let stamps: Vec<_> = recorder
                .events()
                .iter()
                .map(|kinds| kinds.timestamp)
                .collect();
            assert_eq!(CALLS.load(Ordering::SeqCst) - before, 1, "{way:?}");
            assert!(stamps[0] > SystemTime::UNIX_EPOCH, "{way:?}: by the system");
            assert_eq!(stamps[1..], [SystemTime::UNIX_EPOCH], "{way:?}");
        });
    }
}

/// Limits must not depend on timestamps.
// Fails if the elapsed time is computed from timestamps.
#[test]
fn a_clock_that_jumps_ends_no_call() {
    for way in EVERY_WAY {
        let recorder = record("reenters::steps");
        let readings = AtomicUsize::new(0);
        let day = Duration::from_secs(86_400);
        let timeout = limit("reenters::steps", LONG).with_clock(move || {
            let reading = readings.fetch_add(1, Ordering::SeqCst);
            let now = SystemTime::now();
            if reading.is_multiple_of(2) {
                now + day
            } else {
                now - day
            }
        });
        for _ in 0..4 {
            let outcome = way.run(&timeout, |_| Ok::<_, TimeoutError>(7));
            assert_eq!(outcome.status(), CallStatus::Ok, "{way:?}: {outcome:?}");
        }
        let events = recorder.events();
        assert!(events[1].timestamp + day < events[0].timestamp, "{way:?}");
        for event in events {
            assert!(event.elapsed < Duration::from_millis(LONG), "{way:?}");
        }
    }
}

/// A reason that runs user code when it is dropped.
#[derive(Debug)]
struct Reason(Act);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reason")
    }
}

impl Error for Reason {}

impl Drop for Reason {
    fn drop(&mut self) {
        self.0.act();
    }
}

/// The last holder may be user code, which then gets the panic, or a token.
// Fails if the runtime drops a reason without catching its panic.
#[test]
fn a_reason_that_panics_or_makes_calls_when_dropped_changes_no_outcome() {
    for way in EVERY_WAY {
        for act in [Act::Panics, Act::ReEnters] {
            let recorder = record("reenters::reason");
            let (sender, kept) = mpsc::channel();
            let outcome = way.run(&limit("reenters::reason", LONG), move |token| {
                token.cancel_with(Reason(act));
                sender.send(token.clone()).unwrap();
                until_cancelled(&token).map_err(|error| error.cause())
            });
            assert!(
                matches!(outcome, Outcome::Cancelled(_)),
                "{way:?}, {act:?}: {outcome:?}"
            );
            // The late event is emitted too.
            let kinds = recorder.wait_for(2);
            assert_eq!(kinds[0], EventKind::Cancelled, "{way:?}, {act:?}");
            drop(outcome);
            let by_token = caught(|| drop(kept.recv()));
            assert!(by_token.is_some(), "{way:?}");
            works(way);
        }
    }
}

/// A waker that runs user code when it wakes, or when it is dropped.
struct Wakes(Act, Act, Gate);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.2.open();
        self.0.act();
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.1.act();
    }
}

// Fails if the runtime drops a waker without catching its panic.
#[test]
fn a_waker_that_panics_or_makes_calls_changes_no_outcome() {
    let runtime = support::runtime();
    let _inside = runtime.enter();
    panics::record_panics();
    for way in ASYNC {
        for act in [Act::Panics, Act::ReEnters] {
            for (wakes, dropped) in [(act, Act::Nothing), (Act::Nothing, act), (act, act)] {
                let woken = Gate::new();
                let mut call = way.start(&limit("reenters::waker", short()), |token| async move {
                    token.cancelled().await;
                    token.check()
                });
                // The runtime holds the last handle where possible.
                let waker = Waker::from(Arc::new(Wakes(wakes, dropped, woken.clone())));
                let polled = call
                    .as_mut()
                    .poll(&mut std::task::Context::from_waker(&waker));
                assert!(polled.is_pending(), "{way:?}");
                caught(|| drop(waker));
                if wakes == Act::Nothing {
                    // A new waker replaces the previous one, which is dropped.
                    let polled = caught(|| support::poll_once(&mut call, &Gate::new()));
                    assert!(polled.is_some(), "{way:?}, {dropped:?}");
                } else {
                    woken.wait();
                }
                let outcome = block_on(call);
                assert!(
                    matches!(outcome, Outcome::TimedOut(_)),
                    "{way:?}, {wakes:?}, {dropped:?}: {outcome:?}"
                );
                works(way);
            }
        }
    }
}

/// Callbacks at a deadline, at a cancellation, and on a cancelled token.
// Fails if callbacks run under a lock.
#[test]
fn a_callback_may_use_the_whole_api() {
    for way in EVERY_WAY {
        let (sender, done) = mpsc::channel();
        let outcome = way.run(&limit("reenters::callback", short()), move |token| {
            let at_deadline = sender.clone();
            token
                .on_cancel(move || {
                    Act::ReEnters.act();
                    at_deadline.send("deadline").unwrap();
                })
                .forget();
            until_cancelled(&token)
        });
        assert_timed_out(way, &outcome);
        assert_eq!(done.recv_timeout(SOON), Ok("deadline"), "{way:?}");
    }
    concurrent::must_return(|| {
        let token = CancelToken::new();
        let (sender, done) = mpsc::channel();
        let call = || {
            let sender = sender.clone();
            move || {
                Act::ReEnters.act();
                sender.send(()).unwrap();
            }
        };
        let _kept = token.on_cancel(call());
        token.cancel();
        drop(token.on_cancel(call()));
        assert_eq!(done.iter().take(2).count(), 2);
    });
}

/// Runs user code when it is formatted or dropped.
struct Acts {
    shown: Act,
    dropped: Act,
}

impl fmt::Debug for Acts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown.act();
        f.write_str("acts")
    }
}

impl Drop for Acts {
    fn drop(&mut self) {
        self.dropped.act();
    }
}

/// No lock or borrow may be held while a late value, error or payload is formatted or dropped.
// Fails if late values are dropped under a lock.
#[test]
fn a_late_result_may_use_the_whole_api() {
    let ends: [fn(Acts) -> Result<Acts, Acts>; 3] = [Ok, Err, |acts| panic_any(acts)];
    for way in ABANDONING {
        for (place, end) in ends.into_iter().enumerate() {
            let recorder = record("reenters::late");
            let gate = Gate::new();
            let held = gate.clone();
            let outcome = way.run(&limit("reenters::late", short()), move |_| {
                held.wait();
                end(Acts {
                    shown: Act::ReEnters,
                    dropped: Act::ReEnters,
                })
            });
            assert!(matches!(outcome, Outcome::TimedOut(_)), "{way:?}, {place}");
            panics::record_panics();
            gate.open();
            let kinds = recorder.wait_for(2);
            assert_eq!(kinds[0], EventKind::TimedOut, "{way:?}, {place}");
            assert!(support::is_late(&kinds[1]), "{way:?}, {place}: {kinds:?}");
            works(way);
        }
    }
}

/// A listener that runs user code at each event: of a success, of a timeout and of a late result.
// Fails if listeners run under a lock.
#[test]
fn a_listener_may_use_the_whole_api() {
    for way in EVERY_WAY {
        concurrent::must_return(move || {
            let received = Arc::<AtomicUsize>::default();
            let timeout = |ms| {
                let count = Arc::clone(&received);
                limit("reenters::listener", ms).with_listener(move |_| {
                    Act::ReEnters.act();
                    count.fetch_add(1, Ordering::SeqCst);
                })
            };
            let in_time = way.run(&timeout(LONG), |_| Ok::<_, TimeoutError>(7));
            assert!(matches!(in_time, Outcome::Success(7)), "{way:?}");
            let expires = way.run(&timeout(short()), |token| until_cancelled(&token));
            assert!(matches!(expires, Outcome::TimedOut(_)), "{way:?}");
            support::eventually("all three events are received", || {
                received.load(Ordering::SeqCst) == 3
            });
        });
    }
}

annotated! {
    mod falls_back, [
        name = "reenters::fallback", ms = short(),
        fallback = |_| { Act::ReEnters.act(); 0 }
    ], () -> u32 {
        let token: CancelToken = cancel_token;
        support::until_past(&token);
        7
    }
}

// Fails if fallbacks run under a lock.
#[test]
fn a_fallback_may_use_the_whole_api() {
    for way in TIMED {
        assert_eq!(
            concurrent::must_return(move || falls_back::call(way)),
            0,
            "{way:?}"
        );
    }
}
