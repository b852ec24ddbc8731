// A value that waits for work elsewhere, such as a handle or the end of a channel, is a result.
// So is a future that is returned together with another value.

use std::pin::Pin;
use std::sync::mpsc::Receiver;

use timeout_runtime::{TimeoutError, panic_on_timeout, timeout};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[timeout(ms = 50, fallback = panic_on_timeout)]
fn handle(rows: Vec<u8>) -> JoinHandle<usize> {
    tokio::spawn(async move { rows.len() })
}

#[timeout(ms = 50)]
fn handle_in_a_result(rows: Vec<u8>) -> Result<JoinHandle<usize>, TimeoutError> {
    Ok(tokio::spawn(async move { rows.len() }))
}

#[timeout(ms = 50)]
fn channel() -> Option<Receiver<u8>> {
    None
}

#[timeout(ms = 50)]
fn async_channel() -> Option<oneshot::Receiver<u8>> {
    None
}

#[timeout(ms = 50)]
fn connection() -> Result<(u8, Work<()>), TimeoutError> {
    Ok((0, Box::pin(async {})))
}

#[timeout(ms = 50)]
async fn scan(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    let work: Work<usize> = Box::pin(async move { rows.len() });
    Ok(work.await)
}

#[timeout(ms = 50, fallback = panic_on_timeout)]
fn generic<T: Send + 'static>(row: T) -> T {
    row
}

#[timeout(ms = 50, run = "inline", fallback = panic_on_timeout)]
fn pinned<T>(row: Box<T>) -> Pin<Box<T>> {
    Box::into_pin(row)
}

fn main() {
    let _ = (handle, handle_in_a_result, channel, async_channel, connection, scan, generic::<u8>, pinned::<u8>);
}
