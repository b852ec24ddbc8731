//! Runs each recipe against a real server: the work ends at the limit and at a cancellation, the
//! server is idle afterwards, and no later work on the connection is interrupted.
//!
//! Tests whose server is not installed say so and pass. With `TIMEOUT_REQUIRE_SERVERS` in the
//! environment they fail.

mod channel;
#[cfg(target_os = "linux")] // They look for processes in `/proc`.
mod child;
mod http;
mod postgres;
mod redis;
mod socket;
mod sqlite;
mod support;
mod tokio_postgres;
#[cfg(target_os = "linux")] // As `child`.
mod uninterruptible;
