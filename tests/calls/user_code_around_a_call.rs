//! Rule 10 before a call begins and where it ends: options, arguments and conversions are user code too. Whether it panics or makes calls
//! of its own, no verdict changes, nothing is lost, and the next call works.

use crate::{crowd, support, user_code};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::{EVERY_WAY, TIMED, Way, record, short, until_fired};
use timeout_runtime::{
    CancelToken, Cause, Deadline, Ending, EventKind, Failure, FromTimeout, TimeoutError,
};
use user_code::{Act, WANTED, caught, works};

const LONG: u64 = 60_000;

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
    mod fault, [name = "around::fault", ms = short()], () -> Result<u32, Fault> {
        let token: CancelToken = cancel_token;
        until_fired(&token).map_err(|error| Fault(error.cause()))
    }
}

annotated! {
    mod reply, [name = "around::reply", ms = short()], () -> Reply {
        let token: CancelToken = cancel_token;
        support::until_past(&token);
        Reply(None)
    }
}

/// A conversion is made once, by the caller, after the verdict event.
#[track_caller]
fn conversions(name: &'static str, ways: &[Way], call: impl Fn(Way) -> Option<Cause> + Copy) {
    for &way in ways {
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
    conversions("around::fault", &EVERY_WAY, |way| {
        fault::call(way).err().map(|fault| fault.0)
    });
    // A value that a poll in place returns is never late, so it is not replaced.
    conversions("around::reply", &TIMED, |way| reply::call(way).0);
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
            works(way);
        }
    }
}
