//! Rule 10: user code may make calls, add and remove listeners, register callbacks and cancel, wherever it is called. Nothing waits for
//! itself, and nothing recurses without end.

#[path = "../support/user_code.rs"]
mod user_code;
#[macro_use]
#[path = "../support/annotated.rs"]
mod annotated;
#[path = "../support/crowd.rs"]
mod crowd;
#[path = "../support/panics.rs"]
mod panics;
#[path = "../support/mod.rs"]
mod support;

use std::error::Error;
use std::fmt;
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::task::{Wake, Waker};
use std::time::{Duration, SystemTime};

use support::{
    APART, ASYNC, EVERY_WAY, Gate, SOON, TIMED, block_on, limit, record, short, until_fired,
};
use timeout_runtime::{CancelToken, EventKind, Outcome, Timeout, TimeoutError};
use user_code::{Act, caught, works};

const LONG: u64 = 60_000;

/// Guards against recursion without end: the events of the calls that a clock makes are stamped too.
#[test]
fn a_clock_that_makes_calls_of_its_own_policy_comes_to_an_end() {
    for way in EVERY_WAY {
        crowd::ends(move || {
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
                assert!(inside.is_some_and(|ending| ending.is_success()));
                SystemTime::UNIX_EPOCH
            });
            own.set(timeout.clone()).unwrap();
            let outcome = way.run(&timeout, |_| Ok::<_, TimeoutError>(7));
            assert!(outcome.is_success(), "{way:?}: {outcome:?}");
            let stamps: Vec<_> = recorder
                .events()
                .iter()
                .map(|told| told.timestamp)
                .collect();
            assert_eq!(CALLS.load(Ordering::SeqCst) - before, 1, "{way:?}");
            assert!(stamps[0] > SystemTime::UNIX_EPOCH, "{way:?}: by the system");
            assert_eq!(stamps[1..], [SystemTime::UNIX_EPOCH], "{way:?}");
        });
    }
}

/// Guards against a limit that is computed from timestamps.
#[test]
fn a_clock_that_goes_back_and_forth_ends_no_call() {
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
            assert!(outcome.is_success(), "{way:?}: {outcome:?}");
        }
        let events = recorder.events();
        assert!(events[1].timestamp + day < events[0].timestamp, "{way:?}");
        for event in events {
            assert!(event.elapsed < Duration::from_millis(LONG), "{way:?}");
        }
    }
}

/// A reason that acts when it is dropped.
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

/// Its last holder may be the user, whose panic it is then, or a token.
#[test]
fn a_reason_that_panics_or_calls_when_dropped_changes_no_verdict() {
    for way in EVERY_WAY {
        for act in [Act::Panics, Act::ReEnters] {
            let recorder = record("reenters::reason");
            let (sender, kept) = mpsc::channel();
            let outcome = way.run(&limit("reenters::reason", LONG), move |token| {
                token.cancel_with(Reason(act));
                sender.send(token.clone()).unwrap();
                until_fired(&token).map_err(|error| error.cause())
            });
            assert!(
                matches!(outcome, Outcome::Cancelled(_)),
                "{way:?}, {act:?}: {outcome:?}"
            );
            // What the operation ends with, late, is told too.
            let told = recorder.wait_for(2);
            assert_eq!(told[0], EventKind::Cancelled, "{way:?}, {act:?}");
            drop(outcome);
            let by_token = caught(|| drop(kept.recv()));
            assert!(by_token.is_some(), "{way:?}");
            works(way);
        }
    }
}

/// A waker that acts when it wakes, or when it is dropped.
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

#[test]
fn a_waker_that_panics_or_calls_when_it_wakes_or_is_dropped_changes_no_verdict() {
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
                // The last handle is the runtime's, as far as that goes.
                let waker = Waker::from(Arc::new(Wakes(wakes, dropped, woken.clone())));
                let polled = call
                    .as_mut()
                    .poll(&mut std::task::Context::from_waker(&waker));
                assert!(polled.is_pending(), "{way:?}");
                caught(|| drop(waker));
                if wakes == Act::Nothing {
                    // Another one takes its place, whose last handle that was.
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

/// Callbacks at a deadline, at a cancellation, and on a token that has fired.
#[test]
fn a_callback_may_call_all_that_there_is() {
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
            until_fired(&token)
        });
        assert!(
            matches!(outcome, Outcome::TimedOut(_)),
            "{way:?}: {outcome:?}"
        );
        assert_eq!(done.recv_timeout(SOON), Ok("deadline"), "{way:?}");
    }
    crowd::ends(|| {
        let token = CancelToken::new();
        let ran = Arc::<AtomicUsize>::default();
        let call = || {
            let ran = Arc::clone(&ran);
            move || {
                Act::ReEnters.act();
                ran.fetch_add(1, Ordering::SeqCst);
            }
        };
        let _kept = token.on_cancel(call());
        token.cancel();
        drop(token.on_cancel(call()));
        assert_eq!(ran.load(Ordering::SeqCst), 2);
    });
}

/// What acts when it is asked for its text, or dropped.
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

/// Guards against a lock or a borrow that is held while a late value, error or payload is asked or dropped.
#[test]
fn what_an_operation_ends_with_too_late_may_call_all_that_there_is() {
    let ends: [fn(Acts) -> Result<Acts, Acts>; 3] = [Ok, Err, |acts| panic_any(acts)];
    for way in APART {
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
            let told = recorder.wait_for(2);
            assert_eq!(told[0], EventKind::TimedOut, "{way:?}, {place}");
            assert!(!told[1].is_verdict(), "{way:?}, {place}: {told:?}");
            works(way);
        }
    }
}

/// One that acts at each event of a call in time, of one that times out, and of what that has left.
#[test]
fn a_listener_may_call_all_that_there_is() {
    for way in EVERY_WAY {
        crowd::ends(move || {
            let heard = Arc::<AtomicUsize>::default();
            let timeout = |ms| {
                let count = Arc::clone(&heard);
                limit("reenters::listener", ms).with_listener(move |_| {
                    Act::ReEnters.act();
                    count.fetch_add(1, Ordering::SeqCst);
                })
            };
            let in_time = way.run(&timeout(LONG), |_| Ok::<_, TimeoutError>(7));
            assert!(matches!(in_time, Outcome::Success(7)), "{way:?}");
            let expires = way.run(&timeout(short()), |token| until_fired(&token));
            assert!(matches!(expires, Outcome::TimedOut(_)), "{way:?}");
            support::eventually("all three are heard", || heard.load(Ordering::SeqCst) == 3);
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

#[test]
fn a_fallback_may_call_all_that_there_is() {
    for way in TIMED {
        assert_eq!(crowd::ends(move || falls_back::call(way)), 0, "{way:?}");
    }
}
