//! The functions of other tests, in a crate of the edition before.

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
