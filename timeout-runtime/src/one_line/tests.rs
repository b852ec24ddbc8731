//! Checks that no name or message of a user breaks out of the lines that this crate prints.

use std::error::Error;
use std::fmt::{self, Debug, Display};
use std::panic::catch_unwind;
use std::time::{Duration, SystemTime};

use super::OneLine;
use crate::event::{CallId, Event, EventKind, Failure};
use crate::outcome::{Cause, InvalidLimit, Reason, TimeoutError};
use crate::outcome::{Returned, panic_on_timeout};
use crate::time::Deadline;

/// Line breaks, terminal codes, bidirectional controls, invisible characters.
const NASTY: &str = "a\n\r\t\u{b}\u{c}\0\u{1b}[31m\u{7f}\u{85}\u{9b}\u{2028}\u{2029}\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\
                     \u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200b}\u{feff}\u{e0041}z";
const ESCAPED: &str = "a\\n\\r\\t\\u{b}\\u{c}\\0\\u{1b}[31m\\u{7f}\\u{85}\\u{9b}\\u{2028}\\u{2029}\\u{61c}\\u{200e}\\u{200f}\\u{202a}\\u{202b}\
                       \\u{202c}\\u{202d}\\u{202e}\\u{2066}\\u{2067}\\u{2068}\\u{2069}\\u{200b}\\u{feff}\\u{e0041}z";

/// An error that prints `NASTY` in both ways.
struct Nasty;

impl Display for Nasty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NASTY)
    }
}

impl Debug for Nasty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NASTY)
    }
}

impl Error for Nasty {}

#[track_caller]
fn assert_escaped(text: &str) {
    assert!(text.contains(ESCAPED), "{text:?}");
    let rest = text.replace(ESCAPED, "");
    assert!(rest.chars().all(|c| matches!(c, ' '..='~')), "{text:?}");
}

fn error(started: bool, cause: Cause) -> TimeoutError {
    let reason = Reason::new(Nasty);
    let limit = Some(Duration::from_secs(1));
    TimeoutError::new(NASTY, cause, limit, Duration::ZERO, started, Some(reason))
}

const CAUSES: [Cause; 5] = [
    Cause::TimedOut,
    Cause::DeadlineExceeded,
    Cause::Cancelled,
    Cause::NoWorker,
    Cause::NoRuntime,
];

fn failures() -> [Failure<'static>; 2] {
    [Failure::Error(NASTY.into()), Failure::Panic(NASTY.into())]
}

fn event(kind: EventKind<'static>) -> Event<'static> {
    Event {
        timestamp: SystemTime::UNIX_EPOCH,
        call: CallId::fresh(),
        name: NASTY,
        worker: None,
        elapsed: Duration::ZERO,
        limit: None,
        kind,
    }
}

/// Bidirectional controls in names and messages were printed without an escape.
#[test]
fn every_display_text_is_one_line() {
    let mut texts = vec![InvalidLimit { name: NASTY }.to_string()];
    for cause in CAUSES {
        for started in [true, false] {
            let error = error(started, cause);
            texts.extend([error.to_string(), std::io::Error::from(error).to_string()]);
        }
        texts.push(event(EventKind::NotStarted(cause)).to_string());
    }
    for failure in failures() {
        texts.extend([
            failure.to_string(),
            event(EventKind::Failed(failure.clone())).to_string(),
            event(EventKind::AbandonedWorkerStopped(failure.clone())).to_string(),
            event(EventKind::AbandonedWorkerFailed(failure)).to_string(),
        ]);
    }
    for kind in [
        EventKind::Succeeded,
        EventKind::TimedOut,
        EventKind::DeadlineExceeded,
        EventKind::Cancelled,
        EventKind::Dropped,
        EventKind::AbandonedWorkerSucceeded,
    ] {
        texts.push(event(kind).to_string());
    }
    for text in &texts {
        assert_escaped(text);
    }
}

/// The reason of a cancellation was printed with its line breaks.
#[test]
fn every_debug_text_is_one_line() {
    for text in [
        format!("{:?}", error(true, Cause::Cancelled)),
        format!("{:?}", Returned::Error(&Nasty)),
        format!("{:?}", InvalidLimit { name: NASTY }),
        format!("{:?}", event(EventKind::Failed(failures()[0].clone()))),
    ] {
        assert_escaped(&text);
    }
    let pretty = format!("{:#?}", error(true, Cause::Cancelled));
    assert_escaped(&pretty.replace('\n', ""));
}

#[test]
fn panic_on_timeout_panics_with_one_line() {
    let panic = catch_unwind(|| panic_on_timeout::<()>(error(true, Cause::TimedOut)));
    let payload = panic.expect_err("`panic_on_timeout` panics");
    let text: &String = payload.downcast_ref().expect("the payload is a string");
    assert_escaped(text);
}

/// The name of the variable was printed without an escape.
#[test]
#[cfg(unix)]
fn the_error_of_an_invalid_deadline_is_one_line() {
    use std::process::Command;

    // Environment variables cannot contain NUL.
    let nasty = NASTY.replace('\0', "");
    let escaped = ESCAPED.replace("\\0", "");
    let find = |name: &str| Deadline::from_env(name).map_err(|error| error.to_string());
    if let Ok(text) = std::env::var("ONE_LINE_TEXT") {
        let error = find(&text).expect_err("the variable does not hold a deadline");
        assert_eq!(error.matches(&escaped).count(), 2, "{error:?}");
        assert!(error.chars().all(|c| matches!(c, ' '..='~')), "{error:?}");
        return;
    }
    // A child process, because the variables of this process are shared with other tests.
    let test = "one_line::tests::the_error_of_an_invalid_deadline_is_one_line";
    let child = Command::new(std::env::current_exe().expect("the test has a path"))
        .args(["--exact", test])
        .env("ONE_LINE_TEXT", &nasty)
        .env(&nasty, &nasty)
        .output()
        .expect("the test program starts");
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(output.contains("1 passed"), "{child:?}");
}

/// The name was printed without an escape.
#[test]
#[cfg(feature = "latency")]
fn advice_on_a_limit_is_one_line() {
    use crate::event::listener;
    use crate::integrations::latency::Latency;
    use std::num::NonZeroU64;

    let latency = Latency::new();
    listener::tell(None, &event(EventKind::Succeeded));
    assert_escaped(&latency.advise(NonZeroU64::MIN)[NASTY].to_string());
    assert_escaped(&format!("{latency:?}"));
}

#[test]
fn harmless_text_is_unchanged() {
    for text in [
        "",
        "заказ-№1",
        r#"left: "1" \n 'x'"#,
        "e\u{301}\"n",
        "日本 🦀",
    ] {
        assert_eq!(OneLine(text).to_string(), text);
    }
}

#[test]
#[cfg(any(feature = "metrics", feature = "tracing"))]
fn into_text_returns_the_display_text() {
    for text in ["", "inventory", NASTY, "заказ-№1"] {
        assert_eq!(OneLine(text).into_text(), OneLine(text).to_string());
    }
}
