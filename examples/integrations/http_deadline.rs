//! Propagates a deadline through a chain of three HTTP services: each one knows the remaining time,
//! and all stop at the deadline.
//!
//! ```text
//! cargo run -p timeout-integration-examples --example http_deadline
//! ```

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use timeout_runtime::integrations::tower::{
    ClientLayer, ClientService, DeadlineHeader, ServerLayer,
};
use timeout_runtime::{Deadline, TimeoutError, timeout};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tower::{BoxError, Layer, ServiceExt};

/// A client of the next service in the chain.
#[derive(Clone)]
struct Next {
    client: ClientService<Client<HttpConnector, Body>>,
    address: SocketAddr,
}

impl Next {
    fn at(address: SocketAddr) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        // Sends the remaining time with each request.
        let client = ClientLayer::new(DeadlineHeader::Envoy).layer(client);
        Self { client, address }
    }

    async fn ask(self, path: &str) -> Result<String, BoxError> {
        let uri = format!("http://{}{path}", self.address);
        let request = Request::get(uri).body(Body::empty())?;
        let response = self.client.oneshot(request).await?;
        let status = response.status();
        let body = to_bytes(Body::new(response.into_body()), 1024).await?;
        match status {
            StatusCode::OK => Ok(String::from_utf8(body.to_vec())?),
            _ => Err(status.to_string().into()),
        }
    }
}

/// Serves `router` on a free port, and applies the deadline of each request.
async fn serve(router: Router) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let router = router.layer(ServerLayer::new(DeadlineHeader::Envoy));
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(address)
}

fn print_remaining(service: &str) {
    match Deadline::current().remaining() {
        Some(left) => println!("  {service}: {} ms left", left.as_millis()),
        None => println!("  {service}: no deadline"),
    }
}

/// The first and the second service: each one takes 20 ms, then calls the next service.
async fn pass_on(service: &str, next: Next, path: &str) -> Result<String, StatusCode> {
    print_remaining(service);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let response = next.ask(path).await;
    response.map_err(|_| StatusCode::BAD_GATEWAY)
}

async fn shop(State(next): State<Next>, uri: Uri) -> Result<String, StatusCode> {
    pass_on("shop", next, uri.path()).await
}

async fn orders(State(next): State<Next>, uri: Uri) -> Result<String, StatusCode> {
    pass_on("orders", next, uri.path()).await
}

/// The third service: its annotated call inherits the deadline of the request.
async fn stock(
    State(reports): State<UnboundedSender<&'static str>>,
    uri: Uri,
) -> Result<String, StatusCode> {
    print_remaining("stock");
    let pieces = count(uri.path().to_owned(), reports).await;
    let pieces = pieces.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(format!("{pieces} pieces"))
}

#[timeout(name = "count", secs = 60, run = "worker")]
async fn count(path: String, reports: UnboundedSender<&'static str>) -> Result<u32, TimeoutError> {
    if path == "/slow" {
        cancel_token.cancelled().await;
        let _ = reports.send("stock was cancelled");
    }
    cancel_token.check().map(|()| 7)
}

/// The caller of the first service. Its deadline applies to all services.
#[timeout(name = "client", limit = limit)]
async fn ask(shop: Next, path: &str, limit: Duration) -> Result<String, BoxError> {
    shop.ask(path).await
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (sender, mut reports) = unbounded_channel();
    let stock = serve(Router::new().fallback(stock).with_state(sender)).await?;
    let orders = Router::new().fallback(orders).with_state(Next::at(stock));
    let orders = serve(orders).await?;
    let shop = Router::new().fallback(shop).with_state(Next::at(orders));
    let shop = Next::at(serve(shop).await?);

    println!("a client with ten seconds:");
    let response = ask(shop.clone(), "/quick", Duration::from_secs(10)).await?;
    println!("  response: {response}");

    println!("a client with three seconds:");
    let error = ask(shop, "/slow", Duration::from_secs(3)).await;
    let error = error.expect_err("`stock` does not respond in time");
    let is_timed_out = error.downcast_ref().is_some_and(TimeoutError::is_timed_out);
    println!("  timed out: {is_timed_out}");
    println!(
        "  {}",
        reports.recv().await.ok_or("`stock` was not reached")?
    );
    Ok(())
}
