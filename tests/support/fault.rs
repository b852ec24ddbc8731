//! An error of the operation's own, or that of its call.

use timeout_runtime::TimeoutError;

#[derive(Debug)]
#[allow(unreachable_pub)] // Modules beside it use it.
pub enum Fault {
    Own,
    Ended(TimeoutError),
}

impl From<TimeoutError> for Fault {
    fn from(error: TimeoutError) -> Self {
        Self::Ended(error)
    }
}
