//! Compiles functions of the call tests in edition 2021.

#[path = "../calls/argument_shapes.rs"]
mod argument_shapes;
#[path = "../calls/functions_from_macros.rs"]
mod functions_from_macros;
#[path = "../calls/lifetimes_stay.rs"]
mod lifetimes_stay;
#[path = "../calls/returned_futures.rs"]
mod returned_futures;
#[path = "../support/mod.rs"]
mod support;
