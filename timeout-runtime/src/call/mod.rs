//! One call, from its options to its outcome.
//!
//! ```text
//! options ─► start ─► terms ─┬─► worker, task: a shared record (cell); the caller waits (waiter)
//!                            └─► inline, polled, returned_future: the caller runs the operation
//!
//! both ─► view: progress, leave, announce │ start, publish, stop ─► verdict ─► event, return value
//! ```

pub(crate) mod abandoned;
pub(crate) mod cell;
pub(crate) mod checked;
pub(crate) mod convert;
mod events;
pub(crate) mod inline;
pub(crate) mod jobs;
mod large;
pub(crate) mod late_value;
pub(crate) mod options;
pub(crate) mod polled;
pub(crate) mod propagated;
pub(crate) mod report;
pub(crate) mod returned_future;
mod start;
#[cfg(feature = "tokio")]
pub(crate) mod task;
#[cfg(feature = "tokio")]
pub(crate) mod tasks;
mod verdict;
pub(crate) mod view;
pub(crate) mod waiter;
pub(crate) mod worker;

use crate::token::CancelToken;

/// The argument of an operation: its token, or `()`. For `()`, no token is created.
pub trait TokenParam: Sized + 'static {
    /// The argument. `token` creates the token.
    fn create(token: impl FnOnce() -> CancelToken) -> Self;
}

impl TokenParam for () {
    fn create(_: impl FnOnce() -> CancelToken) -> Self {}
}

impl TokenParam for CancelToken {
    fn create(token: impl FnOnce() -> CancelToken) -> Self {
        token()
    }
}
