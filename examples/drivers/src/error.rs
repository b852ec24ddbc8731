//! Why a recipe has no value.

use std::io;

use timeout_runtime::TimeoutError;
use timeout_runtime::integrations::process;

/// The limit, or the driver's own error. The runtime makes the first one of a [`TimeoutError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The call was cancelled, by its limit or by its caller.
    #[error(transparent)]
    Timeout(#[from] TimeoutError),
    /// A socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A child process failed, or was killed.
    #[error(transparent)]
    Process(#[from] process::Error),
    /// `SQLite` failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// `PostgreSQL` failed.
    #[error(transparent)]
    Postgres(#[from] ::tokio_postgres::Error),
    /// Redis failed.
    #[error(transparent)]
    Redis(#[from] ::redis::RedisError),
    /// The HTTP client ureq failed.
    #[error(transparent)]
    Ureq(#[from] ::ureq::Error),
    /// The HTTP client reqwest failed.
    #[error(transparent)]
    Reqwest(#[from] ::reqwest::Error),
}
