//! A gRPC service that returns numbers, without generated code, and its client.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::net::SocketAddr;

use bytes::{Buf, BufMut};
use http::uri::PathAndQuery;
use timeout_runtime::integrations::tower::{ClientLayer, DeadlineHeader};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use tower::Layer;

/// A codec for messages of eight bytes: one number.
#[derive(Clone, Copy, Default)]
pub struct Numbers;

impl Codec for Numbers {
    type Encode = u64;
    type Decode = u64;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Numbers {
    type Item = u64;
    type Error = Status;

    fn encode(&mut self, number: u64, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_u64(number);
        Ok(())
    }
}

impl Decoder for Numbers {
    type Item = u64;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<u64>, Status> {
        Ok(Some(from.get_u64()))
    }
}

pub const PATH: &str = "/numbers.Numbers/Ask";

pub fn channel_to(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    endpoint.expect("a URI").connect_lazy()
}

/// Calls the service with the remaining time of the current context.
pub async fn ask(address: SocketAddr) -> Result<u64, Status> {
    send(address, Request::new(0)).await
}

/// Like `ask`, with this request.
pub async fn send(address: SocketAddr, request: Request<u64>) -> Result<u64, Status> {
    let layer = ClientLayer::new(DeadlineHeader::Grpc);
    let mut client = tonic::client::Grpc::new(layer.layer(channel_to(address)));
    client.ready().await.expect("the client is ready");
    let response = client.unary(request, PathAndQuery::from_static(PATH), Numbers);
    response.await.map(Response::into_inner)
}
