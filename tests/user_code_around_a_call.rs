//! Rule 10 before a call begins and after it has ended: options, arguments, conversions, clocks and reasons are user code too. Whether
//! it panics or makes calls of its own, no verdict changes, nothing is lost, and the next call works.

#[macro_use]
#[path = "support/annotated.rs"]
mod annotated;
#[path = "support/crowd.rs"]
mod crowd;
#[path = "support/panics.rs"]
mod panics;
mod support;

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use support::{ASYNC, EVERY_WAY, Gate, SHORT, SOON, Way, block_on, limit, record, until_fired};
use timeout_runtime::{
    CallContext, CancelToken, Cause, Deadline, Ending, EventKind, Failure, FromTimeout, Outcome,
    Timeout, TimeoutError, add_listener, workers,
};

const LONG: u64 = 60_000;

/// What user code does where it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Nothing,
    Panics,
    ReEnters,
}

const WANTED: &str = "wanted: user code";

impl Act {
    fn act(self) {
        match self {
            Self::Nothing => {}
            Self::Panics if thread::panicking() => {}
            Self::Panics => panic!("{WANTED}"),
            Self::ReEnters => CallContext::detached().run(re_enter),
        }
    }
}

annotated! {
    mod inner, [name = "around::inner", ms = LONG], () -> Result<u32, TimeoutError> { Ok(7) }
}

/// All that there is to be called.
fn re_enter() {
    for way in EVERY_WAY {
        assert_eq!(inner::call(way).unwrap(), 7, "{way:?}");
    }
    let expires = limit("around::expires", 20).outcome_inline(|token| until_fired(&token));
    assert!(matches!(expires, Outcome::TimedOut(_)), "{expires:?}");
    drop(add_listener(|_| ()));
    let (token, called) = (CancelToken::new(), Arc::<AtomicBool>::default());
    let calls = Arc::clone(&called);
    let _registration = token
        .child()
        .on_cancel(move || calls.store(true, Ordering::SeqCst));
    let kept = token.child();
    let flag = Arc::clone(&called);
    let registration = kept.on_cancel(move || flag.store(true, Ordering::SeqCst));
    token.cancel();
    assert!(called.load(Ordering::SeqCst) && !registration.unregister());
    let _ = (workers::stats(), workers::abandoned());
}

/// Runs `call`; `None` if user code has panicked.
fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    panics::record_panics();
    let payload = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => return Some(value),
        Err(payload) => payload,
    };
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or(payload.downcast_ref::<&str>().copied());
    assert_eq!(text, Some(WANTED));
    None
}

/// Which option acts, and how.
type Script = (usize, Act);

/// An option's value, after what it has to do.
fn option<T>((which, act): Script, place: usize, value: T) -> T {
    if which == place {
        act.act();
    }
    value
}

annotated! {
    mod options, [
        name = "around::options",
        ms = option(script, 0, LONG),
        grace = option(script, 1, Duration::ZERO),
        deadline = option(script, 2, Deadline::never()),
        upstream = option(script, 3, CancelToken::new()),
        max_abandoned = option(script, 4, 100)
    ], (script: Script) -> Result<u32, TimeoutError> {
        let _ = script;
        Ok(7)
    }
}

/// A call whose options cannot be had has not begun.
#[test]
fn an_option_that_panics_or_calls_leaves_nothing_behind() {
    for way in EVERY_WAY {
        for place in 0..5 {
            let recorder = record("around::options");
            let ended = caught(|| options::call(way, (place, Act::Panics)));
            assert!(ended.is_none(), "{way:?}, option {place}: {ended:?}");
            assert_eq!(recorder.kinds(), [], "{way:?}, option {place}");
            let answer = crowd::ends(move || options::call(way, (place, Act::ReEnters)));
            assert_eq!(answer.unwrap(), 7, "{way:?}, option {place}");
            assert_eq!(recorder.wait_for(1), [EventKind::Succeeded], "{way:?}");
        }
    }
}

thread_local! {
    /// What a conversion on this thread does.
    static CONVERTS: Cell<Act> = const { Cell::new(Act::Nothing) };
}

/// How often a conversion was asked for.
static CONVERSIONS: AtomicUsize = AtomicUsize::new(0);

fn convert() {
    CONVERSIONS.fetch_add(1, Ordering::SeqCst);
    CONVERTS.replace(Act::Nothing).act();
}

#[derive(Debug)]
struct Fault(Cause);

impl From<TimeoutError> for Fault {
    fn from(error: TimeoutError) -> Self {
        convert();
        Self(error.cause())
    }
}

/// A return type of one's own.
#[derive(Debug)]
struct Reply(Option<Cause>);

impl FromTimeout for Reply {
    fn from_timeout(error: TimeoutError) -> Self {
        convert();
        Self(Some(error.cause()))
    }

    fn ending(&self) -> Ending<'_> {
        Ending::Answer
    }
}

annotated! {
    mod fault, [name = "around::fault", ms = SHORT], () -> Result<u32, Fault> {
        let token: CancelToken = cancel_token;
        until_fired(&token).map_err(|error| Fault(error.cause()))
    }
}

annotated! {
    mod reply, [name = "around::reply", ms = SHORT], () -> Reply {
        let token: CancelToken = cancel_token;
        support::until_past(&token);
        Reply(None)
    }
}

/// A conversion is made once, by the caller, after the verdict event.
#[track_caller]
fn conversions(name: &'static str, call: impl Fn(Way) -> Option<Cause> + Copy) {
    for way in EVERY_WAY {
        for act in [Act::Panics, Act::ReEnters, Act::Nothing] {
            let recorder = record(name);
            let before = CONVERSIONS.load(Ordering::SeqCst);
            CONVERTS.set(act);
            let cause = caught(|| call(way));
            let expected = (act != Act::Panics).then_some(Some(Cause::TimedOut));
            assert_eq!(cause, expected, "{way:?}, {act:?}");
            let made = CONVERSIONS.load(Ordering::SeqCst) - before;
            assert_eq!(made, 1, "{way:?}, {act:?}");
            // What the operation ends with, late, is told too.
            let told = recorder.wait_for(2);
            assert_eq!(told[0], EventKind::TimedOut, "{way:?}, {act:?}");
        }
    }
}

#[test]
fn a_conversion_that_panics_or_calls_changes_no_verdict() {
    conversions("around::fault", |way| {
        fault::call(way).err().map(|fault| fault.0)
    });
    conversions("around::reply", |way| reply::call(way).0);
}

/// An argument that acts when it is dropped, and counts that.
struct Argument(Act, Arc<AtomicUsize>);

impl Drop for Argument {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.act();
    }
}

annotated! {
    mod takes, [name = "around::takes", ms = LONG, deadline = deadline],
        (deadline: Deadline, argument: Argument) -> Result<u32, TimeoutError>
    {
        let _ = (&argument, &deadline);
        Ok(7)
    }
}

/// In the plain function too, such a panic would be the call's.
#[test]
fn an_argument_that_panics_or_calls_when_dropped_is_dropped_once() {
    for way in EVERY_WAY {
        for act in [Act::Panics, Act::ReEnters] {
            let (recorder, drops) = (record("around::takes"), Arc::default());
            let argument = Argument(act, Arc::clone(&drops));
            let answer = caught(|| takes::call(way, Deadline::never(), argument));
            let told = if act == Act::Panics {
                assert!(answer.is_none(), "{way:?}: {answer:?}");
                EventKind::Failed(Failure::Panic(WANTED.into()))
            } else {
                assert_eq!(answer.unwrap().unwrap(), 7, "{way:?}");
                EventKind::Succeeded
            };
            assert_eq!(recorder.wait_for(1), [told], "{way:?}");
            assert_eq!(drops.load(Ordering::SeqCst), 1, "{way:?}, {act:?}");
        }
    }
}

/// The same where the operation never runs. The verdict has been told by then.
#[test]
fn an_argument_of_a_call_that_does_not_start_is_dropped_once() {
    for way in EVERY_WAY {
        for act in [Act::Panics, Act::ReEnters] {
            let (recorder, drops) = (record("around::takes"), Arc::default());
            let argument = Argument(act, Arc::clone(&drops));
            let past = Deadline::at(Instant::now());
            let refused = caught(|| takes::call(way, past, argument));
            if let Some(refused) = refused {
                let error = refused.unwrap_err();
                assert_eq!(error.cause(), Cause::DeadlineExceeded, "{way:?}, {act:?}");
                assert!(!error.was_started(), "{way:?}, {act:?}");
            } else {
                assert_eq!(act, Act::Panics, "{way:?}");
            }
            assert_eq!(
                recorder.wait_for(1),
                [EventKind::NotStarted(Cause::DeadlineExceeded)],
                "{way:?}, {act:?}"
            );
            assert_eq!(drops.load(Ordering::SeqCst), 1, "{way:?}, {act:?}");
            assert_eq!(inner::call(way).unwrap(), 7, "{way:?}, {act:?}");
        }
    }
}

/// Guards against recursion without end: the events of the calls that a clock makes are stamped too.
#[test]
fn a_clock_that_makes_calls_of_its_own_policy_comes_to_an_end() {
    for way in EVERY_WAY {
        crowd::ends(move || {
            static CALLS: AtomicUsize = AtomicUsize::new(0);

            let recorder = record("around::clock");
            let own = Arc::<OnceLock<Timeout>>::default();
            let (policy, before) = (Arc::clone(&own), CALLS.load(Ordering::SeqCst));
            let timeout = limit("around::clock", LONG).with_clock(move || {
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
        let recorder = record("around::steps");
        let readings = AtomicUsize::new(0);
        let day = Duration::from_secs(86_400);
        let timeout = limit("around::steps", LONG).with_clock(move || {
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
            let recorder = record("around::reason");
            let (sender, kept) = mpsc::channel();
            let outcome = way.run(&limit("around::reason", LONG), move |token| {
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
            assert_eq!(inner::call(way).unwrap(), 7, "{way:?}, {act:?}");
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
                let mut call = way.start(&limit("around::waker", SHORT), |token| async move {
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
                assert_eq!(inner::call(way).unwrap(), 7, "{way:?}");
            }
        }
    }
}

/// Callbacks at a deadline, at a cancellation, and on a token that has fired.
#[test]
fn a_callback_may_call_all_that_there_is() {
    for way in EVERY_WAY {
        let (sender, done) = mpsc::channel();
        let outcome = way.run(&limit("around::callback", SHORT), move |token| {
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
