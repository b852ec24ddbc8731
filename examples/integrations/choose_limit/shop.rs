//! An HTTP service with a long tail of slow responses, and its client.

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

/// Returns the duration of a request, or `None` if the service never responds.
///
/// Most prices are cached. One in 25 requests takes much longer, and one in 1000 never ends.
fn time_for(number: u32) -> Option<Duration> {
    // Multiplication by the golden ratio spreads the numbers evenly, so that each range of a few
    // thousand numbers has the same share of slow requests.
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
        let response = self.client.get(uri).await?;
        let price = to_bytes(Body::new(response.into_body()), 1024).await?;
        Ok(str::from_utf8(&price)?.parse()?)
    }
}
