//! Other attributes on the same function, above and below `#[timeout]`.

use crate::support;
use std::panic::Location;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::{block_on, until_cancelled};
use timeout_runtime::{CancelToken, Deadline, TimeoutError, panic_on_timeout, timeout};
use tracing::instrument;

type CallResult = Result<u32, TimeoutError>;

/// The compiler's lints on the uses of these functions show that it sees their attributes.
mod of_the_compiler {
    #![deny(unused, deprecated)]

    use super::*;

    /// Is documented above.
    #[timeout(secs = 60)]
    /// And below.
    #[inline]
    #[cfg(not(any()))]
    #[must_use = "it is the result"]
    pub(super) fn kept() -> Option<u32> {
        Some(7)
    }

    #[timeout(secs = 60)]
    #[deprecated = "it is old"]
    #[inline(never)]
    #[cold]
    pub(super) fn old() -> Option<u32> {
        Some(7)
    }

    #[timeout(secs = 60)]
    #[expect(unused_variables)]
    pub(super) fn expects_what_comes(unused: u32) -> Option<u32> {
        Some(7)
    }

    #[timeout(secs = 60)]
    pub(super) fn expects_at_the_argument(#[expect(unused_variables)] unused: u32) -> Option<u32> {
        Some(7)
    }

    #[timeout(secs = 60)]
    pub(super) fn expects_inside() -> Option<u32> {
        #![expect(unused_variables)]
        let unused = 7;
        Some(7)
    }

    #[cfg_attr(all(), timeout(secs = 60))]
    #[cfg_attr(any(), no_such_attribute)]
    pub(super) fn conditional() -> Option<bool> {
        Some(cancel_token.deadline().remaining().is_some())
    }

    #[timeout(secs = 60)]
    #[track_caller]
    pub(super) fn tracked() -> Option<&'static Location<'static>> {
        Some(Location::caller())
    }
}

#[test]
fn attributes_of_the_compiler_are_kept() {
    use of_the_compiler::*;

    #[expect(unused_must_use, reason = "the attribute is kept")]
    fn ignores() {
        kept();
    }
    ignores();
    #[expect(deprecated, reason = "the attribute is kept")]
    let old = old();
    assert_eq!(old, Some(7));
    assert_eq!(expects_what_comes(1), Some(7));
    assert_eq!(expects_at_the_argument(1), Some(7));
    assert_eq!(expects_inside(), Some(7));
    assert_eq!(conditional(), Some(true));
    assert!(tracked().is_some());
}

/// Records spans with their fields.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Spans {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        let mut seen = self.0.lock().unwrap();
        seen.push(fields.0);
        tracing::span::Id::from_u64(u64::try_from(seen.len()).unwrap())
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

struct Fields(String);

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        use std::fmt::Write;

        write!(self.0, " {field}={value:?}").unwrap();
    }
}

mod instrumented {
    use super::*;

    fn limit(hangs: bool) -> u64 {
        if hangs { 30 } else { 60_000 }
    }

    #[instrument]
    #[timeout(ms = limit(hangs))]
    pub(super) fn above(hangs: bool, id: u32) -> CallResult {
        if hangs {
            return until_cancelled(&cancel_token);
        }
        Ok(id)
    }

    #[timeout(ms = limit(hangs))]
    #[instrument]
    pub(super) fn below(hangs: bool, id: u32) -> CallResult {
        if hangs {
            return until_cancelled(&cancel_token);
        }
        Ok(id)
    }

    #[instrument]
    #[timeout(ms = limit(hangs))]
    pub(super) async fn async_above(hangs: bool, id: &u32) -> CallResult {
        if hangs {
            cancel_token.cancelled().await;
        }
        cancel_token.check()?;
        Ok(*id)
    }

    #[timeout(ms = limit(hangs))]
    #[instrument]
    pub(super) async fn async_below(hangs: bool, id: &u32) -> CallResult {
        if hangs {
            cancel_token.cancelled().await;
        }
        cancel_token.check()?;
        Ok(*id)
    }
}

#[test]
fn instrument_may_be_above_or_below() {
    use instrumented::*;

    let spans = Spans::default();
    tracing::subscriber::with_default(spans.clone(), || {
        for hangs in [false, true] {
            let outcomes = [
                above(hangs, 7),
                below(hangs, 7),
                block_on(async_above(hangs, &7)),
                block_on(async_below(hangs, &7)),
            ];
            for outcome in outcomes {
                match outcome {
                    Ok(id) => assert!(!hangs && id == 7),
                    Err(error) => assert!(hangs && error.is_timed_out(), "{error:?}"),
                }
            }
        }
    });
    // Of two attributes the lower one is applied last. Below `instrument`, the worker creates the
    // span,
    // without the subscriber of this thread.
    let of = |name: &str, hangs| format!("{name} hangs={hangs} id=7");
    let expected: Vec<_> = [false, true]
        .iter()
        .flat_map(|hangs| ["below", "async_above", "async_below"].map(|name| of(name, hangs)))
        .collect();
    assert_eq!(*spans.0.lock().unwrap(), expected);
}

/// With rstest, which has a `timeout` attribute of its own. Below `rstest`, the attribute applies
/// to
/// the generated test around the body, so the body has no token variable.
mod cases {
    use super::*;
    use rstest::{fixture, rstest};

    #[fixture]
    fn seven() -> u32 {
        7
    }

    #[timeout(secs = 60)]
    #[rstest]
    #[case(7, 7)]
    #[case(8, 8)]
    fn above(seven: u32, #[case] one: u32, #[case] other: u32) {
        assert!(cancel_token.remaining().is_some());
        assert!(one >= seven);
        assert_eq!(one, other);
    }

    #[rstest]
    #[case(7, 7)]
    #[case(8, 8)]
    #[timeout_runtime::timeout("1m")]
    fn below(seven: u32, #[case] one: u32, #[case] other: u32) {
        assert!(one >= seven);
        assert_eq!(one, other);
        assert!(Deadline::current().remaining().is_some());
    }

    #[rstest]
    #[case(7)]
    #[timeout_runtime::timeout(secs = 60)]
    fn with_a_result(#[case] one: u32) -> Result<(), TimeoutError> {
        CancelToken::current().check()?;
        assert_eq!(one, 7);
        Ok(())
    }

    #[rstest]
    #[case(7)]
    #[tokio::test]
    #[timeout_runtime::timeout(secs = 60)]
    async fn asynchronous(seven: u32, #[case] one: u32) {
        tokio::task::yield_now().await;
        assert_eq!(one, seven);
        assert!(Deadline::current().remaining().is_some());
    }

    #[rstest]
    #[should_panic(expected = "(limit 30ms)")]
    #[timeout_runtime::timeout(ms = 30, fallback = panic_on_timeout)]
    fn hangs(#[values(1, 2)] row: u32) {
        assert!(CancelToken::current().sleep(Duration::MAX / row).is_err());
    }
}

/// With the `test_case` of ntest, which panics on an attribute below it with a non-literal
/// argument.
mod literal_cases {
    use super::*;
    use ntest_test_cases::test_case;

    #[test_case(7)]
    #[timeout("1m")]
    #[test_case(8)]
    #[timeout(secs = 60, token = "stop")]
    fn below(one: u32) {
        assert!((7..9).contains(&one));
        assert!(Deadline::current().remaining().is_some());
    }

    #[test_case(7)]
    #[timeout(ms = 30, fallback = "panic_on_timeout", on_late = "drop")]
    #[should_panic(expected = "(limit 30ms)")]
    fn hangs(row: u32) {
        assert!(CancelToken::current().sleep(Duration::MAX / row).is_err());
    }

    #[timeout(secs = 60)]
    #[test_case(7)]
    #[test_case(8)]
    fn above(one: u32) {
        assert!((7..9).contains(&one));
        assert!(cancel_token.remaining().is_some());
    }
}
