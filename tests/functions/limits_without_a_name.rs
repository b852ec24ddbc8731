//! The limit as the first argument of the attribute, without its option word.

use std::time::Duration;

use crate::support::block_on;
use timeout_runtime::{CallStatus, Deadline, TimeoutError, timeout};

const LIMIT: Duration = Duration::from_secs(90);

struct Budget {
    per_call: Duration,
}

/// How long the current call may still take.
fn remaining() -> Option<Duration> {
    Deadline::current().remaining()
}

#[timeout("1m 30s")]
fn text() -> Option<Duration> {
    remaining()
}

#[timeout(LIMIT, name = "constant", run = "inline")]
fn constant() -> Option<Duration> {
    remaining()
}

#[timeout(Duration::from_secs(90))]
async fn call() -> Option<Duration> {
    remaining()
}

#[timeout(budget.per_call, run = "inline")]
fn field(budget: &Budget) -> Result<Option<Duration>, TimeoutError> {
    Ok(remaining())
}

#[timeout(half * 2)]
async fn sum(half: Duration) -> Option<Duration> {
    remaining()
}

macro_rules! from_a_macro {
    ($name:ident, $limit:expr) => {
        #[timeout($limit, run = "inline")]
        fn $name() -> Option<Duration> {
            remaining()
        }
    };
}

from_a_macro!(literal, "90s");
from_a_macro!(expression, LIMIT / 2 + LIMIT / 2);

#[test]
fn a_first_argument_without_a_name_is_the_limit() {
    let budget = Budget { per_call: LIMIT };
    for remaining in [
        text(),
        constant(),
        block_on(call()),
        field(&budget).unwrap(),
        block_on(sum(LIMIT / 2)),
        literal(),
        expression(),
    ] {
        let remaining = remaining.expect("the call has a deadline");
        assert!(remaining > LIMIT / 2 && remaining <= LIMIT, "{remaining:?}");
    }
}

#[test]
fn a_limit_without_a_name_that_is_zero_has_expired_on_entry() {
    let budget = Budget {
        per_call: Duration::ZERO,
    };
    let error = field(&budget).unwrap_err();
    assert!(
        error.is_timed_out() && error.status() == CallStatus::NotStarted,
        "{error:?}"
    );
}
