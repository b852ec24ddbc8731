//! HTTP by `reqwest`, an async client with a blocking form.

use std::time::Duration;

use reqwest::{Client, blocking};
use timeout_runtime::timeout;

use crate::Error;

/// Fetches a page. Dropping the future closes the connection.
///
/// # Errors
///
/// Fails at the limit, or if the client reports an error.
#[timeout(name = "reqwest", limit = limit)]
pub async fn fetch(client: &Client, url: &str, limit: Duration) -> Result<String, Error> {
    Ok(client.get(url).send().await?.text().await?)
}

/// Fetches a page with the blocking client, which stops at the deadline, but not at a cancellation
/// before it.
///
/// # Errors
///
/// Fails at the limit, or if the client reports an error.
#[timeout(name = "reqwest_blocking", limit = limit)]
pub fn fetch_blocking(
    client: blocking::Client,
    url: String,
    limit: Duration,
) -> Result<String, Error> {
    let request = client.get(&url).timeout(cancel_token.remaining_or(limit));
    Ok(request.send()?.text()?)
}
