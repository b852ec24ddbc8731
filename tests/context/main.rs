//! Tests of contexts: what nested calls, threads, tasks and child processes inherit.

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
#[path = "../support/tenant.rs"]
mod tenant;
#[path = "../support/user_code.rs"]
mod user_code;

mod budgets_are_shared;
mod call_tasks;
mod context_is_restored;
mod contexts_hold;
mod deadline_arithmetic;
mod deadlines_of_child_processes;
mod nearest_deadline_names_the_cause;
mod nested_in_place;
mod propagators;
mod thread_ends;
mod what_a_worker_inherits;
