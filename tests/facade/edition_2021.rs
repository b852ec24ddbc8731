//! The functions of other tests, in a crate of the edition before.

#![allow(clippy::duplicate_mod)] // Each file brings its support.

#[path = "../argument_shapes.rs"]
mod argument_shapes;
#[path = "../functions_from_macros.rs"]
mod functions_from_macros;
#[path = "../lifetimes_stay.rs"]
mod lifetimes_stay;
#[path = "../returned_futures.rs"]
mod returned_futures;
