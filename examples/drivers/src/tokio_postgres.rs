//! `PostgreSQL`, by the async driver `tokio-postgres`.
//!
//! A dropped future leaves its query running at the server, so the operation runs as a task: its
//! caller leaves at the limit, and the task cancels the query.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use timeout_runtime::timeout;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_postgres::{CancelToken, Client, NoTls};

use crate::Error;

/// Runs a query that returns one number. `server` is the address of the database.
///
/// # Errors
///
/// Fails at the limit, or if the database reports an error.
#[timeout(name = "average", limit = limit, run = "task")]
pub async fn average(
    db: Arc<Mutex<Client>>,
    server: SocketAddr,
    sql: String,
    limit: Duration,
) -> Result<i64, Error> {
    let db = db.lock_owned().await;
    let query = db.cancel_token();
    let (stop, settle) = (|| cancel(&query, server), Duration::from_secs(10));
    let run = cancel_token.interrupt_async_with(stop, settle, db.query_one(&sql, &[]));
    Ok(run.await??.get(0))
}

async fn cancel(query: &CancelToken, server: SocketAddr) -> Result<(), Error> {
    let mut socket = TcpStream::connect(server).await?;
    query.cancel_query_raw(&mut socket, NoTls).await?;
    // The server closes the socket once it has cancelled the query.
    socket.read_to_end(&mut Vec::new()).await?;
    Ok(())
}
