//! Deadlines sent over HTTP and gRPC.

#[path = "../support/grpc_service.rs"]
mod grpc_service;
#[path = "../support/request_work.rs"]
mod request_work;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tenant.rs"]
mod tenant;
#[path = "../support/wire.rs"]
mod wire;

mod client_deadlines;
mod deadline_headers;
mod deadlines_from_hop_to_hop;
mod deadlines_over_grpc;
mod deadlines_over_http;
mod request_context;
mod requests_that_wait;
mod rules_over_the_wire;
mod server_deadlines;
mod server_shutdown;
mod servers_that_hang_up;
mod streamed_responses;
