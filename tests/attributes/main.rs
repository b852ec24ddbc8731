//! Attributes of other crates beside `#[timeout]`.

#[path = "../support/mod.rs"]
mod support;

mod attributes_beside;
mod instrumented_functions;
