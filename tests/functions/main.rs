//! Tests of other crates' attributes beside `#[timeout]`.

#[path = "../support/mod.rs"]
mod support;

mod attributes_beside;
mod instrumented_functions;
