//! Tests of events: their order, number and text, their listeners, and what the features `metrics`
//! and `tracing` record.

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

mod event_order;
mod ids_and_timestamps;
mod listeners_reenter;
mod metrics_count_every_outcome;
mod metrics_of_a_late_recorder;
mod odd_names;
mod one_event_per_call;
mod spans_cross_threads;
mod stopped_operations;
