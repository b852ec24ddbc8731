//! A call keeps no memory after its end, although its parent token lives as long as the process.
//!
//! The environment variable `TIMEOUT_TEST_CALLS` sets the number of calls, about 100 000 by
//! default.

use crate::own_process::in_own_process;
use crate::support;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::LazyLock;
use std::time::Duration;

use support::{ASYNC, EVERY_WAY, Gate, Way, block_on, eventually, poll_once, runtime};
use timeout_runtime::{CallContext, CancelToken, TimeoutError, timeout, workers};
use tokio::runtime::Runtime;
use tokio::task::yield_now;

/// The parent of all calls, which is never cancelled.
static PARENT: LazyLock<CancelToken> = LazyLock::new(CancelToken::new);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Answer,
    Error,
    Panic,
    /// With the result of a nested call, which inherits from its caller and from the common parent.
    Nested,
    /// At its limit.
    TimedOut,
    /// Its future is dropped after the first poll.
    Dropped,
}

const EVERY_END: [Ends; 6] = [
    Ends::Answer,
    Ends::Error,
    Ends::Panic,
    Ends::Nested,
    Ends::TimedOut,
    Ends::Dropped,
];

impl Ends {
    fn limit(self) -> Duration {
        match self {
            Self::TimedOut => Duration::from_micros(100),
            _ => Duration::from_secs(60),
        }
    }

    /// One of this many calls ends like this.
    fn one_of(self) -> usize {
        match self {
            Self::TimedOut => 10,
            _ => 1,
        }
    }
}

fn own_error() -> Result<u32, TimeoutError> {
    let cancelled = CancelToken::new();
    cancelled.cancel();
    cancelled.check().map(|()| 7)
}

/// A panic that bypasses the panic hook.
fn panics() -> ! {
    resume_unwind(Box::new(Ends::Panic))
}

#[timeout(name = "long_lived_parents::inner", secs = 30, run = "inline", upstream = *PARENT)]
fn inner() -> Result<u32, TimeoutError> {
    cancel_token.check().map(|()| 7)
}

#[timeout(name = "long_lived_parents::inner", secs = 30, upstream = *PARENT)]
async fn inner_async() -> Result<u32, TimeoutError> {
    yield_now().await;
    cancel_token.check().map(|()| 7)
}

annotated! {
    mod below_parent, [name = "long_lived_parents::call", limit = ends.limit(), upstream = *PARENT],
    (ends: Ends) -> Result<u32, TimeoutError>,
    {
        match ends {
            Ends::Answer | Ends::Dropped => cancel_token.check().map(|()| 7),
            Ends::Error => own_error(),
            Ends::Panic => panics(),
            Ends::Nested => inner(),
            Ends::TimedOut => support::until_cancelled(&cancel_token),
        }
    },
    async {
        match ends {
            Ends::Answer => cancel_token.check().map(|()| 7),
            Ends::Error => own_error(),
            Ends::Panic => panics(),
            Ends::Nested => inner_async().await,
            Ends::TimedOut | Ends::Dropped => {
                cancel_token.cancelled().await;
                cancel_token.check().map(|()| 7)
            }
        }
    }
}

fn call(way: Way, ends: Ends) {
    if ends == Ends::Dropped && ASYNC.contains(&way) {
        let mut call = below_parent::start(way, ends);
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
        return;
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| match way {
        Way::SyncWorker | Way::SyncInline => below_parent::call(way, ends),
        _ => block_on(below_parent::start(way, ends)),
    }));
    match (ends, outcome) {
        (Ends::Panic, Err(payload)) => assert!(payload.is::<Ends>()),
        (Ends::Answer | Ends::Nested | Ends::Dropped, Ok(Ok(7))) => {}
        (Ends::Error, Ok(Err(error))) => assert!(error.is_cancelled()),
        (Ends::TimedOut, Ok(Err(error))) => assert!(error.is_timed_out()),
        (_, outcome) => panic!("{way:?}, {ends:?}: {outcome:?}"),
    }
}

/// Uses the parent for everything other than calls.
fn use_parent() {
    let child = PARENT.child();
    let both = CancelToken::linked([&*PARENT, &child]);
    drop(PARENT.on_cancel(|| {}));
    let called = Gate::new();
    let calls = called.clone();
    let kept = both.on_cancel(move || calls.open());
    assert!(poll_once(&mut PARENT.cancelled(), &Gate::new()).is_pending());
    assert!(poll_once(&mut both.clone().cancelled_owned(), &Gate::new()).is_pending());
    assert_eq!(PARENT.wait_timeout(Duration::ZERO), None);
    let context = CallContext::current()
        .with_token(&PARENT)
        .with_token(&child);
    assert_eq!(context.run(inner).unwrap(), 7);
    child.cancel();
    assert!(context.run(inner).is_err());
    called.wait();
    assert!(!kept.unregister_and_wait() && !PARENT.is_cancelled());
}

/// The bytes in use once all operations have ended.
fn in_use_after_all(runtime: &Runtime) -> usize {
    eventually("all operations have ended", || {
        workers::stats().busy == 0 && runtime.metrics().num_alive_tasks() == 0
    });
    crate::in_use()
}

/// Asserts that `work` does not keep memory each time.
#[track_caller]
fn assert_no_growth(runtime: &Runtime, times: usize, what: &str, work: impl Fn()) {
    let before = in_use_after_all(runtime);
    for _ in 0..times {
        work();
    }
    let grown = in_use_after_all(runtime).saturating_sub(before);
    // A link that is not removed keeps at least a token, which takes twice as much.
    assert!(
        grown < times * 32,
        "{what}: {times} calls kept {grown} bytes"
    );
}

/// Only some outcomes used to remove the link to the parent.
#[test]
fn ended_calls_keep_no_memory_on_a_parent_that_outlives_them() {
    in_own_process(|| {
        let calls =
            std::env::var("TIMEOUT_TEST_CALLS").map_or(100_000, |calls| calls.parse().unwrap());
        let each = (calls / (EVERY_WAY.len() * EVERY_END.len())).max(2_000);
        let runtime = runtime();
        let _inside = runtime.enter();
        for way in EVERY_WAY {
            for ends in EVERY_END {
                (0..each / 10 / ends.one_of()).for_each(|_| call(way, ends));
            }
        }
        for way in EVERY_WAY {
            for ends in EVERY_END {
                let what = format!("{way:?}, {ends:?}");
                assert_no_growth(&runtime, each / ends.one_of(), &what, || call(way, ends));
            }
        }
        assert_no_growth(&runtime, each, "tokens", use_parent);
        assert!(!PARENT.is_cancelled());
    });
}
