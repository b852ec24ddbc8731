//! Tests that run a program and check how its process ends, and of the helper for such tests.

#[path = "../support/built.rs"]
mod built;
#[cfg(unix)]
#[path = "../support/children.rs"]
mod children;
#[path = "../support/concurrent.rs"]
mod concurrent;
#[path = "../support/own_process.rs"]
mod own_process;
#[path = "../support/program.rs"]
mod program;
#[path = "../support/mod.rs"]
mod support;

mod child_families;
mod child_output;
mod forked_children;
mod large_values;
mod limits_at_run_time;
mod own_processes;
mod panic_abort;
mod process_exit;
mod refused_threads;
mod signalled_processes;
mod stack_size;
mod stopped_children;
