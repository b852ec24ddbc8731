//! The operations of [`operations`], with a limit by the attribute.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use timeout_runtime::{Deadline, TimeoutError, timeout};

use crate::operations::{self, Pends};

#[timeout(name = "add", secs = 5)]
pub(crate) fn add(x: u64) -> Result<u64, TimeoutError> {
    Ok(operations::add(x))
}

#[timeout(name = "work", secs = 5)]
pub(crate) fn work(x: u64) -> Result<u64, TimeoutError> {
    Ok(operations::work(x))
}

#[timeout(name = "sleep", secs = 5)]
pub(crate) fn sleep(x: u64) -> Result<u64, TimeoutError> {
    Ok(operations::sleep(x))
}

/// Ignores its cancellation, and ends 4 ms after its limit.
#[timeout(name = "ignore", ms = 1)]
pub(crate) fn ignore(x: u64) -> Result<u64, TimeoutError> {
    Ok(operations::ignore(x))
}

/// Stops soon after its limit, when its token is cancelled.
#[timeout(name = "obey", ms = 1)]
pub(crate) fn obey(x: u64) -> Result<u64, TimeoutError> {
    let result = operations::obey(x, || cancel_token.is_cancelled());
    cancel_token.check()?;
    Ok(result)
}

/// Runs `f` inside a call.
#[timeout(name = "inside", secs = 60)]
pub(crate) fn inside<T: Send + 'static>(f: fn() -> T) -> Result<T, TimeoutError> {
    Ok(f())
}

#[timeout(name = "ready", secs = 5)]
pub(crate) async fn ready(x: u64) -> Result<u64, TimeoutError> {
    Ok(operations::add(x))
}

#[timeout(name = "ready_near", ms = 50)]
pub(crate) async fn ready_near(x: u64) -> Result<u64, TimeoutError> {
    Ok(operations::add(x))
}

/// Checks its token.
#[timeout(name = "checked", secs = 5)]
pub(crate) async fn checked(x: u64) -> Result<u64, TimeoutError> {
    cancel_token.check()?;
    Ok(operations::add(x))
}

#[timeout(name = "nested", secs = 5)]
pub(crate) async fn nested(x: u64) -> Result<u64, TimeoutError> {
    ready(x).await
}

#[timeout(name = "pending_once", secs = 5)]
pub(crate) async fn pending_once(x: u64) -> Result<u64, TimeoutError> {
    Pends(1).await;
    Ok(operations::add(x))
}

#[timeout(name = "pending_often", secs = 5)]
pub(crate) async fn pending_often(times: u32) -> Result<u64, TimeoutError> {
    Pends(times).await;
    Ok(1)
}

#[timeout(name = "sleep_async", secs = 5)]
pub(crate) async fn sleep_async(limit: Duration) -> Result<(), TimeoutError> {
    tokio::time::sleep(limit).await;
    Ok(())
}

#[timeout(name = "never", ms = 1)]
pub(crate) async fn never() -> Result<(), TimeoutError> {
    pending().await
}

/// Counts the started operations, and never ends by itself.
#[timeout(name = "wait", deadline = deadline)]
pub(crate) async fn wait(deadline: Deadline, begun: Arc<AtomicU32>) -> Result<(), TimeoutError> {
    begun.fetch_add(1, Ordering::Relaxed);
    pending().await
}

/// Checks the cancellation of the enclosing call, without its token.
pub(crate) fn is_cancelled() -> bool {
    timeout_runtime::check().is_err()
}
