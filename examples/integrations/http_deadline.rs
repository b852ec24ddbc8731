//! Three services behind one another over HTTP: each knows how long its caller still waits, and all stop when that time is up.
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

/// Where a service finds the next one.
#[derive(Clone)]
struct Next {
    client: ClientService<Client<HttpConnector, Body>>,
    address: SocketAddr,
}

impl Next {
    fn at(address: SocketAddr) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        // Each request tells what is left by then.
        let client = ClientLayer::new(DeadlineHeader::envoy()).layer(client);
        Self { client, address }
    }

    async fn ask(self, path: &str) -> Result<String, BoxError> {
        let uri = format!("http://{}{path}", self.address);
        let request = Request::get(uri).body(Body::empty())?;
        let answer = self.client.oneshot(request).await?;
        let status = answer.status();
        let body = to_bytes(Body::new(answer.into_body()), 1024).await?;
        match status {
            StatusCode::OK => Ok(String::from_utf8(body.to_vec())?),
            _ => Err(status.to_string().into()),
        }
    }
}

/// Serves `router` on a port of its own, with the deadline of each request around it.
async fn serve(router: Router) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let router = router.layer(ServerLayer::http(DeadlineHeader::envoy()));
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(address)
}

fn tell_what_is_left(service: &str) {
    match Deadline::current().remaining() {
        Some(left) => println!("  {service}: {} ms left", left.as_millis()),
        None => println!("  {service}: no deadline"),
    }
}

/// The first service and the second: each works for a while, then asks the next one.
async fn pass_on(service: &str, next: Next, path: &str) -> Result<String, StatusCode> {
    tell_what_is_left(service);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let answer = next.ask(path).await;
    answer.map_err(|_| StatusCode::BAD_GATEWAY)
}

async fn shop(State(next): State<Next>, uri: Uri) -> Result<String, StatusCode> {
    pass_on("shop", next, uri.path()).await
}

async fn orders(State(next): State<Next>, uri: Uri) -> Result<String, StatusCode> {
    pass_on("orders", next, uri.path()).await
}

/// The third service: a call like any other, which takes part in the deadline of its request.
async fn stock(
    State(told): State<UnboundedSender<&'static str>>,
    uri: Uri,
) -> Result<String, StatusCode> {
    tell_what_is_left("stock");
    let pieces = count(uri.path().to_owned(), told).await;
    let pieces = pieces.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(format!("{pieces} pieces"))
}

#[timeout(name = "count", secs = 60, run = "worker")]
async fn count(path: String, told: UnboundedSender<&'static str>) -> Result<u32, TimeoutError> {
    if path == "/slow" {
        cancel_token.cancelled().await;
        let _ = told.send("stock was told to stop");
    }
    cancel_token.check().map(|()| 7)
}

/// The caller of them all. What it does not wait for, nobody works on.
#[timeout(name = "client", limit = patience)]
async fn ask(shop: Next, path: &str, patience: Duration) -> Result<String, BoxError> {
    shop.ask(path).await
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (sender, mut told) = unbounded_channel();
    let stock = serve(Router::new().fallback(stock).with_state(sender)).await?;
    let orders = Router::new().fallback(orders).with_state(Next::at(stock));
    let orders = serve(orders).await?;
    let shop = Router::new().fallback(shop).with_state(Next::at(orders));
    let shop = Next::at(serve(shop).await?);

    println!("a client with ten seconds:");
    let answer = ask(shop.clone(), "/quick", Duration::from_secs(10)).await?;
    println!("  answer: {answer}");

    println!("a client with three seconds:");
    let error = ask(shop, "/slow", Duration::from_secs(3)).await;
    let error = error.expect_err("the stock is slow");
    let is_timed_out = error.downcast_ref().is_some_and(TimeoutError::is_timed_out);
    println!("  timed out: {is_timed_out}");
    println!("  {}", told.recv().await.ok_or("no service was reached")?);
    Ok(())
}
