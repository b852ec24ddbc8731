//! Propagates deadlines between services: each request carries its remaining time in a header.
//!
//! - [`ServerLayer`] reads the header and runs the service in a [`CallContext`](crate::CallContext)
//!   with that deadline. Annotated calls in the service inherit it.
//! - [`ClientLayer`] sends the remaining time of the current context. It does not send a request
//!   whose deadline has passed.
//! - [`DeadlineHeader`] reads and writes the header, without a layer.
//!
//! Both layers implement [`tower_layer::Layer`], and so work with axum, tonic, hyper and everything
//! else that is built on [`tower_service::Service`]. Of their services and futures, only
//! [`ClientService`] has a public name. Another service is `<L as Layer<S>>::Service`.

mod body;
mod client;
mod grpc;
mod header;
mod refusal;
mod respond;
mod server;
mod server_future;
mod waiting;
mod work;

pub use client::{ClientError, ClientLayer, ClientService};
pub use header::{DeadlineHeader, HeaderError};
pub use refusal::Refusal;
pub use server::ServerLayer;
