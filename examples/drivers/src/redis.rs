//! Redis, by the blocking and the async connection of `redis`.
//!
//! `CLIENT UNBLOCK` ends a command that waits, such as `BLPOP`. The server carries it out before it
//! responds, so it does not reach a later command. A command that computes cannot be interrupted.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Commands, Connection, FromRedisValue, cmd};
use timeout_runtime::timeout;

use crate::Error;

/// Waits for an element of the list `key`. `control` is a second connection, which all calls share.
///
/// # Errors
///
/// Fails at the limit, or if the server reports an error.
///
/// # Panics
///
/// Panics if another call has panicked while it had the connection.
#[timeout(name = "pop", limit = limit)]
pub fn pop(
    db: Arc<Mutex<Connection>>,
    control: Arc<Mutex<Connection>>,
    key: String,
    limit: Duration,
) -> Result<String, Error> {
    let mut db = cancel_token.lock(&db)?.expect("no command has panicked");
    let id: i64 = cmd("CLIENT").arg("ID").query(&mut *db)?;
    let unblock = cmd("CLIENT").arg("UNBLOCK").arg(id).arg("ERROR").to_owned();
    let stop = move || unblock.exec(&mut *control.lock().ok()?).ok();
    let [_, value]: [String; 2] = cancel_token.interrupt_with(stop, || db.blpop(&key, 0.0))??;
    Ok(value)
}

/// Waits for an element of the list `key` on an async connection. `control` is a second one, which
/// all calls share.
///
/// # Errors
///
/// Fails at the limit, or if the server reports an error.
#[timeout(name = "pop_async", limit = limit, run = "task")]
pub async fn pop_async(
    db: Arc<tokio::sync::Mutex<MultiplexedConnection>>,
    control: MultiplexedConnection,
    key: String,
    limit: Duration,
) -> Result<String, Error> {
    let mut db = db.lock_owned().await;
    let id: i64 = cmd("CLIENT").arg("ID").query_async(&mut *db).await?;
    let unblock = cmd("CLIENT").arg("UNBLOCK").arg(id).arg("ERROR").to_owned();
    let stop = || async { unblock.exec_async(&mut control.clone()).await };
    let settle = Duration::from_secs(10);
    let run = cancel_token.interrupt_async_with(stop, settle, db.blpop(key, 0.0));
    let [_, value]: [String; 2] = run.await??;
    Ok(value)
}

/// Runs any command, and returns the connection if the server has responded in time. Otherwise
/// closes it: the response may still be on its way.
///
/// # Errors
///
/// Fails at the limit, or if the server reports an error.
#[timeout(name = "request", limit = limit)]
pub fn request<T>(
    mut db: Connection,
    command: redis::Cmd,
    limit: Duration,
) -> Result<(T, Connection), Error>
where
    T: FromRedisValue + Send + 'static,
{
    cancel_token.check()?;
    db.set_read_timeout(cancel_token.remaining())?;
    let value = command.query(&mut db)?;
    db.set_read_timeout(None)?;
    Ok((value, db))
}
