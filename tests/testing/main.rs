//! Tests of `testing`: virtual time, and cancellations at every check.

#[path = "../support/own_process.rs"]
mod own_process;
#[path = "../support/mod.rs"]
mod support;

mod advance;
mod blocking_waits;
mod clock_bounds;
mod every_check;
mod exact_times;
mod names_of_what_blocks;
mod on_executors;
mod several_clocks;
mod with_paused_tokio;

use std::time::Duration;

use support::SOON;
use timeout_runtime::testing::TestClock;

/// A clock that moves by itself. On a busy machine nothing may happen for seconds.
fn new_clock() -> TestClock {
    TestClock::new().patience(SOON)
}

/// A clock that only the test moves.
fn manual_clock() -> TestClock {
    TestClock::manual().patience(SOON)
}

/// So many seconds.
const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
