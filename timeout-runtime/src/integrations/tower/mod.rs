//! Deadlines over the wire: what is left of a deadline goes to the next service in a header of the request.
//!
//! [`ServerLayer`] reads the header and opens a [`CallContext`](crate::CallContext) with that deadline around the service, so that
//! annotated calls inside take part in it. [`ClientLayer`] sends what is left of the current context's deadline on, and does not send
//! what has already expired. Both are [`tower_layer::Layer`]s; they go with axum, tonic, hyper and whatever else is made of
//! [`tower_service::Service`]s. [`DeadlineHeader`] is the header alone.

mod body;
mod client;
mod grpc;
mod header;
mod refusal;
mod server;
mod waiting;
mod work;

pub use body::ServerBody;
pub use client::{ClientError, ClientFuture, ClientLayer, ClientService};
pub use grpc::grpc_status;
pub use header::{DeadlineHeader, HeaderError, HeaderMistake};
pub use refusal::{Refusal, http_status};
pub use server::{ServerFuture, ServerLayer, ServerService};
pub use waiting::{Waiting, WaitingFuture, WaitingServerLayer};
