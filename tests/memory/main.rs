//! Tests of the memory that tokens and calls keep. Each test counts the memory of its own process.

#[macro_use]
#[path = "../support/annotated.rs"]
mod annotated;
#[path = "../support/own_process.rs"]
mod own_process;
#[path = "../support/mod.rs"]
mod support;

mod done_channels;
mod links_to_tokio_tokens;
mod long_lived_parents;
mod memory_after_a_peak;
mod pending_calls;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The bytes that are in use in this process.
fn in_use() -> usize {
    let stats = MEMORY.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}
