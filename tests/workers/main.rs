//! Tests of the worker threads: their number, settings and reuse, and operations that occupy them.

#[macro_use]
#[path = "../support/annotated.rs"]
mod annotated;
#[path = "../support/concurrent.rs"]
mod concurrent;
#[path = "../support/own_process.rs"]
mod own_process;
#[path = "../support/panics.rs"]
mod panics;
#[path = "../support/mod.rs"]
mod support;

mod abandoned_operations;
mod callbacks_without_a_worker;
mod idle_workers;
mod late_results;
mod nested_calls_and_caps;
mod panicking_operations;
mod pool_cap;
mod pool_threads;
mod stuck_floods;
mod stuck_operations;
mod thread_start_hooks;
mod threads_started_early;
mod workers_start_clean;
