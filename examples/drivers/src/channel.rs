//! Channels of `crossbeam-channel`, by the feature of that name of the runtime.

use std::time::Duration;

use crossbeam_channel::{Receiver, select};
use timeout_runtime::timeout;

use crate::Error;

/// Waits for a value in one of two channels.
///
/// # Errors
///
/// Fails at the limit.
#[timeout(name = "first", limit = limit)]
pub fn first<T>(here: Receiver<T>, there: Receiver<T>, limit: Duration) -> Result<Option<T>, Error>
where
    T: Send + 'static,
{
    let done = cancel_token.done();
    select! {
        recv(here) -> value => Ok(value.ok()),
        recv(there) -> value => Ok(value.ok()),
        recv(done) -> _ => Ok(cancel_token.check().map(|()| None)?),
    }
}
