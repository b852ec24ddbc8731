//! `#[track_caller]` functions in options see the line of the attribute.

use crate::own_process::in_own_process;
use crate::support;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Mutex;

use support::block_on;
use timeout_runtime::{CancelToken, TimeoutError, timeout};

type Place = (&'static str, u32);

#[track_caller]
fn here() -> Place {
    let place = Location::caller();
    (place.file(), place.line())
}

/// A fallback for any return type that a location converts into.
#[track_caller]
fn place<T: From<Place>>(_: TimeoutError) -> T {
    here().into()
}

struct Tracked;

impl Tracked {
    #[track_caller]
    fn place(_: TimeoutError) -> Place {
        here()
    }
}

trait Places {
    fn tracked(error: TimeoutError) -> Place;
}

impl Places for Tracked {
    #[track_caller]
    fn tracked(_: TimeoutError) -> Place {
        here()
    }
}

fn cancelled() -> CancelToken {
    let token = CancelToken::new();
    token.cancel();
    token
}

const FIRST: u32 = line!() + 2;

#[timeout(secs = 60, upstream = cancelled(), fallback = place)]
fn on_a_worker() -> Place {
    unreachable!("the operation does not start")
}

#[timeout(secs = 60, upstream = cancelled(), run = "inline", fallback = place::<Place>)]
fn inline() -> Place {
    unreachable!("the operation does not start")
}

#[timeout(secs = 60, upstream = cancelled(), fallback = Tracked::place)]
async fn polled() -> Place {
    unreachable!("the operation does not start")
}

#[timeout(secs = 60, upstream = cancelled(), run = "worker", fallback = <Tracked as Places>::tracked)]
async fn polled_on_a_worker() -> Place {
    unreachable!("the operation does not start")
}

#[timeout(secs = 60, upstream = cancelled(), fallback = place)]
fn returned() -> impl Future<Output = Place> {
    async { unreachable!("the operation does not start") }
}

#[timeout(secs = 60, upstream = cancelled(), fallback = place)]
fn boxed() -> Pin<Box<dyn Future<Output = Place>>> {
    Box::pin(async { unreachable!("the operation does not start") })
}

#[timeout(secs = 60, upstream = cancelled(), on_late = drop, fallback = place)]
fn with_on_late() -> Place {
    unreachable!("the operation does not start")
}

// The location used to be one in the standard library.
// Fails if the runtime calls the fallback, and not the expansion.
#[test]
fn a_fallback_that_tracks_its_caller_sees_the_line_of_the_attribute() {
    let seen = [
        on_a_worker(),
        inline(),
        block_on(polled()),
        block_on(polled_on_a_worker()),
        block_on(returned()),
        block_on(boxed()),
        with_on_late(),
    ];
    for ((file, line), expected) in seen.into_iter().zip((FIRST..).step_by(5)) {
        assert_eq!((file, line), (file!(), expected));
    }
}

const PANICS: u32 = line!() + 2;

#[timeout(
    secs = 60,
    upstream = cancelled(),
    fallback = timeout_runtime::panic_on_timeout
)]
fn panics() {
    unreachable!("the operation does not start")
}

// The panic used to be reported in the standard library.
#[test]
fn panic_on_timeout_panics_at_the_attribute() {
    in_own_process(|| {
        static SEEN: Mutex<Option<(String, u32)>> = Mutex::new(None);
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().expect("a panic has a location");
            *SEEN.lock().unwrap() = Some((place.file().to_owned(), place.line()));
        }));
        std::panic::catch_unwind(panics).unwrap_err();
        let (file, line) = SEEN.lock().unwrap().take().expect("a recorded panic");
        assert_eq!(file, file!());
        assert!((PANICS..PANICS + 5).contains(&line), "{line}");
    });
}

/// Tests whose calls have no result. Another test calls them.
mod without_fallback {
    use super::{cancelled, timeout};

    pub(super) const FIRST: u32 = line!() + 5;

    #[test]
    #[ignore = "it panics, which another test expects"]
    #[timeout("1m", upstream = cancelled())]
    fn below() {
        unreachable!("the operation does not start")
    }

    #[timeout("1m", upstream = cancelled(), run = "inline", on_late = drop)]
    #[test]
    #[ignore = "it panics, which another test expects"]
    fn above() {
        unreachable!("the operation does not start")
    }

    #[tokio::test]
    #[ignore = "it panics, which another test expects"]
    #[timeout("1m", upstream = cancelled())]
    async fn below_tokio() {
        unreachable!("the operation does not start")
    }

    #[timeout("1m", upstream = cancelled())]
    #[tokio::test]
    #[ignore = "it panics, which another test expects"]
    async fn above_tokio() {
        unreachable!("the operation does not start")
    }

    pub(super) const TESTS: [fn(); 4] = [below, above, below_tokio, above_tokio];
}

// Fails if the panic is reported at the attribute.
#[test]
fn a_test_without_a_result_panics_at_its_own_line() {
    in_own_process(|| {
        static SEEN: Mutex<Option<(String, u32, String)>> = Mutex::new(None);
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().expect("a panic has a location");
            let text = info.payload_as_str().expect("a text").to_owned();
            *SEEN.lock().unwrap() = Some((place.file().to_owned(), place.line(), text));
        }));
        let lines = (without_fallback::FIRST..).step_by(7);
        for (test, expected) in without_fallback::TESTS.into_iter().zip(lines) {
            std::panic::catch_unwind(test).unwrap_err();
            let (file, line, text) = SEEN.lock().unwrap().take().expect("a recorded panic");
            assert_eq!((&*file, line), (file!(), expected), "{text}");
            assert!(text.contains("was cancelled"), "{text}");
        }
    });
}

static LATE: Mutex<Option<Place>> = Mutex::new(None);

#[track_caller]
fn late(_: Result<(), TimeoutError>) {
    *LATE.lock().unwrap() = Some(here());
}

const ON_LATE: u32 = line!() + 2;

#[timeout(ms = 1, run = "inline", on_late = late)]
fn is_late() -> Result<(), TimeoutError> {
    while !cancel_token.is_cancelled() {
        std::thread::yield_now();
    }
    Ok(())
}

// Fails if the runtime calls `on_late`, and not the expansion.
#[test]
fn an_on_late_that_tracks_its_caller_sees_the_line_of_the_attribute() {
    is_late().unwrap_err();
    let seen = LATE.lock().unwrap().take();
    assert_eq!(seen, Some((file!(), ON_LATE)));
}
