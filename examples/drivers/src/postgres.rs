//! `PostgreSQL`, by the blocking driver `postgres`.
//!
//! The driver's cancel request is a message on a connection of its own. The driver does not wait
//! until the server has read it, so the request may reach the next query on the connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use postgres::{Client, NoTls};
use timeout_runtime::timeout;

use crate::Error;

/// Runs a query that returns one number, and returns the connection if it was not interrupted.
/// Otherwise closes it: a cancel request may still be on its way to it.
///
/// # Errors
///
/// Fails at the limit, or if the database reports an error.
#[timeout(name = "total", limit = limit)]
pub fn total(mut db: Client, sql: String, limit: Duration) -> Result<(i64, Client), Error> {
    let query = db.cancel_token();
    let stop = move || query.cancel_query(NoTls);
    let row = cancel_token.interrupt_with(stop, || db.query_one(&sql, &[]))??;
    Ok((row.get(0), db))
}

/// Runs a query that returns one number, on a connection that stays good. `control` is a second
/// connection with the same role, which all calls share.
///
/// # Errors
///
/// Fails at the limit, or if the database reports an error.
///
/// # Panics
///
/// Panics if another call has panicked while it had the connection.
#[timeout(name = "sum", limit = limit)]
pub fn sum(
    db: Arc<Mutex<Client>>,
    control: Arc<Mutex<Client>>,
    sql: String,
    limit: Duration,
) -> Result<i64, Error> {
    let mut db = cancel_token.lock(&db)?.expect("no query has panicked");
    let pid: i32 = db.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    let cancel = "SELECT pg_cancel_backend($1)";
    let stop = move || control.lock().ok()?.execute(cancel, &[&pid]).ok();
    let row = cancel_token.interrupt_with(stop, || db.query_one(&sql, &[]))??;
    Ok(row.get(0))
}
