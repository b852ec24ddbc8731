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

/// So many seconds.
const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
