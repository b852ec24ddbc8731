//! An error type that holds the operation's own error or the call's `TimeoutError`.

use timeout_runtime::TimeoutError;

#[derive(Debug)]
#[allow(unreachable_pub)] // Sibling modules use it.
pub enum CallError {
    Own,
    Timeout(TimeoutError),
}

impl From<TimeoutError> for CallError {
    fn from(error: TimeoutError) -> Self {
        Self::Timeout(error)
    }
}
