//! A service with a long tail, and its client, over HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Path;
use axum::routing::get;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use timeout_runtime::timeout;
use tokio::net::TcpListener;
use tower::BoxError;

/// How long the service takes for a request. Most prices are at hand; one in 25 is asked for elsewhere, and that takes a while, now and then for ever.
fn time_for(number: u32) -> Option<Duration> {
    // The golden ratio spreads the numbers evenly: any few thousand in a row have their share of slow ones.
    let spread = f64::from(number.wrapping_mul(0x9E37_79B9)) / f64::from(u32::MAX);
    let slower = 1.0 - spread;
    let millis = match slower {
        ..0.001 => return None,
        ..0.04 => 30.0 * (0.04 / slower).powf(0.8),
        _ => 2.0 * slower.powf(-0.3),
    };
    Some(Duration::from_secs_f64(millis / 1000.0))
}

async fn price(Path(number): Path<u32>) -> &'static str {
    match time_for(number) {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
    "7"
}

async fn serve() -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/{number}", get(price));
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(address)
}

#[derive(Clone)]
pub(crate) struct Shop {
    client: Client<HttpConnector, Body>,
    address: SocketAddr,
}

impl Shop {
    pub(crate) async fn open() -> Result<Self, BoxError> {
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            address: serve().await?,
        })
    }

    #[timeout(name = "quote", ms = limit)]
    pub(crate) async fn quote(&self, number: u32, limit: u64) -> Result<u32, BoxError> {
        let uri = format!("http://{}/{number}", self.address).parse()?;
        let answer = self.client.get(uri).await?;
        let price = to_bytes(Body::new(answer.into_body()), 1024).await?;
        Ok(str::from_utf8(&price)?.parse()?)
    }
}
