//! Sends the deadline of a tonic client to a tonic server, where nested calls inherit it.
//!
//! ```text
//! cargo run -p timeout-integration-examples --example grpc_deadline
//! ```

use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::{Buf, BufMut};
use http::uri::PathAndQuery;
use timeout_runtime::integrations::tower::{
    ClientError, ClientLayer, ClientService, DeadlineHeader, ServerLayer,
};
use timeout_runtime::{CallContext, Deadline, TimeoutError, timeout};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tower::{BoxError, Layer, service_fn};

/// A codec for plain-text messages, so that the example needs no generated code.
#[derive(Clone, Copy, Default)]
struct Text;

impl Codec for Text {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Text {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, text: String, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(text.as_bytes());
        Ok(())
    }
}

impl Decoder for Text {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        let text = String::from_utf8(bytes.to_vec());
        text.map(Some)
            .map_err(|_| Status::invalid_argument("not UTF-8"))
    }
}

/// An operation of the server. The client's deadline cancels its token.
#[timeout(name = "count", secs = 60)]
async fn count(sku: &str) -> Result<u32, TimeoutError> {
    if sku == "nail" {
        // Never ends by itself.
        cancel_token.cancelled().await;
    }
    cancel_token.check().map(|()| 7)
}

async fn stock(request: Request<String>) -> Result<Response<String>, Status> {
    let sku = request.into_inner();
    if let Some(left) = Deadline::current().remaining() {
        println!("  server: {} ms left for `{sku}`", left.as_millis());
    }
    let pieces = count(&sku).await;
    let pieces = pieces.map_err(|error| Status::unavailable(error.to_string()))?;
    Ok(Response::new(format!("{pieces} pieces")))
}

/// Serves `stock` on a free port, with a limit of two seconds for each request.
fn serve() -> Result<SocketAddr, BoxError> {
    let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = incoming.local_addr()?;
    let service = service_fn(async |request| {
        let mut server = tonic::server::Grpc::new(Text);
        Ok::<_, Infallible>(server.unary(service_fn(stock), request).await)
    });
    let layer = ServerLayer::new(DeadlineHeader::Grpc).at_most(Duration::from_secs(2));
    let server = Server::builder().layer(layer);
    tokio::spawn(server.serve_with_incoming(service, incoming));
    Ok(address)
}

type Client = tonic::client::Grpc<ClientService<Channel>>;

/// Sends a request. The client layer adds the remaining time of the context.
async fn send(mut client: Client, sku: &str) -> Result<String, Status> {
    let ready = client.ready().await;
    ready.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = PathAndQuery::from_static("/shop.Stock/Count");
    let response = client
        .unary(Request::new(sku.to_owned()), path, Text)
        .await?;
    Ok(response.into_inner())
}

#[timeout(name = "client", limit = limit)]
async fn ask(client: Client, sku: &str, limit: Duration) -> Result<String, BoxError> {
    Ok(send(client, sku).await?)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let endpoint = Endpoint::from_shared(format!("http://{}", serve()?))?;
    let channel = ClientLayer::new(DeadlineHeader::Grpc).layer(endpoint.connect_lazy());
    let client = Client::new(channel);

    println!("a client with ten seconds:");
    let response = ask(client.clone(), "bolt", Duration::from_secs(10)).await?;
    println!("  response: {response}");

    println!("a server with a limit of two seconds:");
    let error = ask(client.clone(), "nail", Duration::from_secs(10)).await;
    let error = error.expect_err("counting nails never ends");
    let status = error.downcast_ref().map(Status::code);
    println!("  status: {:?}", status.ok_or("no status")?);

    println!("a client with one second:");
    let error = ask(client.clone(), "nail", Duration::from_secs(1)).await;
    let error = error.expect_err("counting nails never ends");
    let is_timed_out = error.downcast_ref().is_some_and(TimeoutError::is_timed_out);
    println!("  timed out: {is_timed_out}");

    println!("a client whose deadline has passed:");
    let late = CallContext::current().with_deadline(Deadline::after(Duration::ZERO));
    let status = late.scope(send(client, "bolt")).await;
    let status = status.expect_err("the deadline has passed");
    let error = status.source().and_then(<dyn Error>::downcast_ref);
    let error: &ClientError<tonic::transport::Error> = error.ok_or("not an error of the layer")?;
    println!("  {error}");
    Ok(())
}
