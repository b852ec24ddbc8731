//! Deadlines over the wire: what is left of a deadline goes to the next service in a header of the request.
//!
//! [`ServerLayer`] reads the header and opens a [`CallContext`](crate::CallContext) with that deadline around the service, so that
//! annotated calls inside take part in it. [`DeadlineHeader`] is the header alone.

mod header;
mod server;

pub use header::{DeadlineHeader, HeaderError, HeaderMistake};
pub use server::{Refusal, ServerFuture, ServerLayer, ServerService, grpc_status, http_status};
