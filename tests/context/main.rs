//! Tests of contexts: what nested calls, threads, tasks and child processes inherit.

#[macro_use]
#[path = "../support/annotated.rs"]
mod annotated;
#[path = "../support/crowd.rs"]
mod crowd;
#[path = "../support/mod.rs"]
mod support;

mod budgets_are_shared;
mod contexts_hold;
mod deadline_arithmetic;
mod deadlines_of_child_processes;
mod nearest_end_names_the_cause;
mod thread_ends;
mod what_a_worker_carries;
