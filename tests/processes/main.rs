//! Tests that run a program and check how its process ends.

#[path = "../support/crowd.rs"]
mod crowd;
#[path = "../support/program.rs"]
mod program;
#[path = "../support/mod.rs"]
mod support;

mod forked_children;
mod large_values;
mod panic_abort;
mod process_exit;
mod refused_threads;
mod signalled_processes;
mod stack_size;
