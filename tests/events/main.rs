//! Tests of events: their order, number and text.

#[path = "../support/crowd.rs"]
mod crowd;
#[path = "../support/mod.rs"]
mod support;

mod event_order;
mod odd_names;
mod one_event_per_call;
