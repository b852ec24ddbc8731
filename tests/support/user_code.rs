//! User code that panics or re-enters the runtime.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use timeout_runtime::{CallContext, CancelToken, Outcome, TimeoutError, add_listener, workers};

use super::panics;
use super::support::{EVERY_WAY, Gate, Way, limit, until_cancelled};

/// How the user code behaves when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Nothing,
    Panics,
    ReEnters,
}

pub const WANTED: &str = "wanted: user code";

impl Act {
    pub fn act(self) {
        match self {
            Self::Nothing => {}
            Self::Panics if thread::panicking() => {}
            Self::Panics => panic!("{WANTED}"),
            Self::ReEnters => CallContext::detached().run(re_enter),
        }
    }
}

/// Asserts that an ordinary call succeeds.
#[track_caller]
pub fn works(way: Way) {
    let outcome = way.run(&limit("acts::works", 60_000), |_| Ok::<_, TimeoutError>(7));
    assert!(
        matches!(outcome, Outcome::Success(7)),
        "{way:?}: {outcome:?}"
    );
}

/// Uses every entry point of the runtime.
pub fn re_enter() {
    for way in EVERY_WAY {
        works(way);
    }
    let expires = limit("acts::expires", 20)
        .inline()
        .outcome(|token| until_cancelled(&token));
    assert!(matches!(expires, Outcome::TimedOut(_)), "{expires:?}");
    drop(add_listener(|_| ()));
    let (token, called) = (CancelToken::new(), Gate::new());
    drop(token.child().on_cancel(|| ()));
    let kept = token.child();
    let calls = called.clone();
    let registration = kept.on_cancel(move || calls.open());
    token.cancel();
    called.wait();
    assert!(!registration.unregister_and_wait());
    let _ = (workers::stats(), workers::abandoned());
}

/// Runs `call`; returns `None` if user code panicked.
#[track_caller]
pub fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
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
