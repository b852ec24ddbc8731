//! `SQLite`, by `rusqlite`: `interrupt` ends the statement that runs at that moment.

use std::time::Duration;

use rusqlite::Connection;
use timeout_runtime::{CancelToken, timeout};

use crate::Error;

/// Runs a query that returns one number.
///
/// # Errors
///
/// Fails at the limit, or if the database reports an error.
#[timeout(name = "count", limit = limit, run = "inline")]
pub fn count(db: &Connection, sql: &str, limit: Duration) -> Result<i64, Error> {
    let statement = db.get_interrupt_handle();
    let stop = move || statement.interrupt();
    Ok(cancel_token.interrupt_with(stop, || db.query_row(sql, [], |row| row.get(0)))??)
}

/// Makes waits for the lock of another connection end when the current call is cancelled. Outside a
/// call they have no end.
///
/// # Errors
///
/// Fails if the database reports an error.
pub fn check_while_locked(db: &Connection) -> Result<(), Error> {
    let wait = |_| {
        CancelToken::current()
            .sleep(Duration::from_millis(1))
            .is_ok()
    };
    Ok(db.busy_handler(Some(wait))?)
}
