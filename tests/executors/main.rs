//! Tests of calls on Tokio, smol, other executors and without one, and of their clocks.

#[path = "../support/concurrent.rs"]
mod concurrent;
#[path = "../support/mod.rs"]
mod support;

mod inside_runtimes;
mod nested_waits;
mod on_smol;
mod paused_time;
mod without_tokio_timers;
