//! Options, arguments and conversions are user code that runs before or after an operation.
//! If it panics or makes calls, the outcome stays the same and the next call works.

use crate::{concurrent, support, user_code};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::{EVERY_WAY, LONG, TIMED, Way, record, short, until_cancelled};
use timeout_runtime::{
    CallStatus, CancelToken, Cause, Deadline, EventKind, Failure, FromTimeout, Returned,
    TimeoutError,
};
use user_code::{Act, WANTED, caught, works};

/// The position of the option that acts, and its action.
type Script = (usize, Act);

/// Returns an option's value after its action.
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

/// A call has not started if evaluating one of its options panics.
#[test]
fn an_option_may_panic_or_make_calls() {
    for way in EVERY_WAY {
        for place in 0..5 {
            let recorder = record("around::options");
            let ended = caught(|| options::call(way, (place, Act::Panics)));
            assert!(ended.is_none(), "{way:?}, option {place}: {ended:?}");
            assert_eq!(recorder.kinds(), [], "{way:?}, option {place}");
            let result =
                concurrent::must_return(move || options::call(way, (place, Act::ReEnters)));
            assert_eq!(result.unwrap(), 7, "{way:?}, option {place}");
            assert_eq!(recorder.wait_for(1), [EventKind::Succeeded], "{way:?}");
        }
    }
}

thread_local! {
    /// Action of a conversion on this thread.
    static CONVERTS: Cell<Act> = const { Cell::new(Act::Nothing) };
}

/// Number of conversions into each type.
static ERRORS: AtomicUsize = AtomicUsize::new(0);
static REPLIES: AtomicUsize = AtomicUsize::new(0);

fn convert(conversions: &AtomicUsize) {
    conversions.fetch_add(1, Ordering::SeqCst);
    CONVERTS.replace(Act::Nothing).act();
}

#[derive(Debug)]
struct ConvertedError(Cause);

impl From<TimeoutError> for ConvertedError {
    fn from(error: TimeoutError) -> Self {
        convert(&ERRORS);
        Self(error.cause())
    }
}

/// A user's return type.
#[derive(Debug)]
struct Reply(Option<Cause>);

impl FromTimeout for Reply {
    fn from_timeout(error: TimeoutError) -> Self {
        convert(&REPLIES);
        Self(Some(error.cause()))
    }

    fn returned(&self) -> Returned<'_> {
        Returned::Value
    }
}

annotated! {
    mod converted_error, [name = "around::error", ms = short()], () -> Result<u32, ConvertedError> {
        let token: CancelToken = cancel_token;
        until_cancelled(&token).map_err(|error| ConvertedError(error.cause()))
    }
}

annotated! {
    mod reply, [name = "around::reply", ms = short()], () -> Reply {
        let token: CancelToken = cancel_token;
        support::until_past(&token);
        Reply(None)
    }
}

/// The caller must convert the error once, after the outcome event.
#[track_caller]
fn conversions(
    name: &'static str,
    ways: &[Way],
    conversions: &AtomicUsize,
    call: impl Fn(Way) -> Option<Cause> + Copy,
) {
    for &way in ways {
        for act in [Act::Panics, Act::ReEnters, Act::Nothing] {
            let recorder = record(name);
            let before = conversions.load(Ordering::SeqCst);
            CONVERTS.set(act);
            let cause = caught(|| call(way));
            let expected = (act != Act::Panics).then_some(Some(Cause::TimedOut));
            assert_eq!(cause, expected, "{way:?}, {act:?}");
            let made = conversions.load(Ordering::SeqCst) - before;
            assert_eq!(made, 1, "{way:?}, {act:?}");
            // The late event of the operation follows.
            let events = recorder.wait_for(2);
            assert_eq!(events[0], EventKind::TimedOut, "{way:?}, {act:?}");
        }
    }
}

// Fails if an error is converted under a lock, which a panic poisons.
#[test]
fn a_converted_error_that_panics_or_makes_calls_changes_no_outcome() {
    conversions("around::error", &EVERY_WAY, &ERRORS, |way| {
        converted_error::call(way).err().map(|fault| fault.0)
    });
}

#[test]
fn a_return_type_that_panics_or_makes_calls_changes_no_outcome() {
    // A success of an inline poll is never late, so no conversion replaces it.
    conversions("around::reply", &TIMED, &REPLIES, |way| reply::call(way).0);
}

/// An argument that acts and is counted when it is dropped.
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

/// A panic of such an argument ends the plain function too, so it is a panic of the operation.
#[test]
fn an_argument_whose_drop_panics_or_makes_calls_is_dropped_once() {
    for way in EVERY_WAY {
        for act in [Act::Panics, Act::ReEnters] {
            let (recorder, drops) = (record("around::takes"), Arc::default());
            let argument = Argument(act, Arc::clone(&drops));
            let result = caught(|| takes::call(way, Deadline::never(), argument));
            let expected = if act == Act::Panics {
                assert!(result.is_none(), "{way:?}: {result:?}");
                EventKind::Failed(Failure::Panic(WANTED.into()))
            } else {
                assert_eq!(result.unwrap().unwrap(), 7, "{way:?}");
                EventKind::Succeeded
            };
            assert_eq!(recorder.wait_for(1), [expected], "{way:?}");
            assert_eq!(drops.load(Ordering::SeqCst), 1, "{way:?}, {act:?}");
        }
    }
}

/// The operation never runs. Its argument is dropped after the outcome event.
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
                assert_eq!(error.status(), CallStatus::NotStarted, "{way:?}, {act:?}");
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
