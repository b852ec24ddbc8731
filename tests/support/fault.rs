//! An error type that holds the operation's own error or the call's `TimeoutError`.

use timeout_runtime::TimeoutError;

#[derive(Debug)]
#[allow(unreachable_pub)] // Sibling modules use it.
pub enum Fault {
    Own,
    Ended(TimeoutError),
}

impl From<TimeoutError> for Fault {
    fn from(error: TimeoutError) -> Self {
        Self::Ended(error)
    }
}
