//! One call: from what was asked of it to its verdict.
//!
//! ```text
//! ask ──► terms ──► worker, task: a record, its operation elsewhere; the caller waits (remote)
//!                   inline, made: the operation where the caller is
//!              both ──► view: look, leave, announce │ assess, answer, stop ──► verdict, event, error
//! ```

pub(crate) mod ask;
pub(crate) mod cell;
pub(crate) mod checked;
pub(crate) mod inline;
mod large;
pub(crate) mod polled;
pub(crate) mod propagated;
pub(crate) mod report;
pub(crate) mod returned_future;
pub(crate) mod rim;
mod start;
#[cfg(feature = "tokio")]
pub(crate) mod task;
pub(crate) mod unclaimed;
mod verdict;
pub(crate) mod view;
pub(crate) mod waiter;
pub(crate) mod worker;

use crate::token::CancelToken;

/// What an operation takes: its token, or nothing, and then no token is made for its sake.
pub trait TokenParam: Sized + 'static {
    /// The parameter; `token` makes the token.
    fn of(token: impl FnOnce() -> CancelToken) -> Self;
}

impl TokenParam for () {
    fn of(_: impl FnOnce() -> CancelToken) -> Self {}
}

impl TokenParam for CancelToken {
    fn of(token: impl FnOnce() -> CancelToken) -> Self {
        token()
    }
}
