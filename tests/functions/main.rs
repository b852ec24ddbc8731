//! Tests of annotated functions: their behaviour, size, lints and documentation are those of the
//! plain functions, also beside attributes of other crates.

#[path = "../support/built.rs"]
mod built;
#[path = "../support/concurrent.rs"]
mod concurrent;
#[path = "../support/own_process.rs"]
mod own_process;
#[macro_use]
#[path = "../shapes/mod.rs"]
mod shapes;
#[path = "../support/mod.rs"]
mod support;

mod annotated_tests;
mod attributes_beside;
mod documentation;
#[path = "../shapes/edition_2024.rs"]
mod edition;
mod future_depth;
mod future_size;
mod instrumented_functions;
mod limits_without_a_name;
mod lints_of_plain_functions;
mod quiet_under_lints;
mod tracked_callers;
mod unwind_safety;
