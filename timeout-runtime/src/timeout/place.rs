//! The places where a [`Timeout`](crate::Timeout) runs an operation, as types.
//!
//! | place | sync operation | async operation |
//! |---|---|---|
//! | [`ByDefault`] | on a worker thread | polled in place |
//! | [`Inline`] | on the caller's thread | polled in place |
//! | [`OnWorker`] | on a worker thread | built and polled on a worker thread |
//! | `AsTask` | | spawned on the Tokio runtime around the call |
//!
//! The implementations of [`SyncPlace`] and [`AsyncPlace`] say what an operation must be for a
//! place. These types and traits are public items of a private module: users read them in errors
//! of the compiler, but cannot name or implement them.

mod async_places;
mod sync_places;

use std::fmt::Debug;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::call::convert::IntoReturn;
use crate::call::late_value::LateGuard;
use crate::call::options::CallOptions;
use crate::outcome::{Returned, of_result};

pub(super) use async_places::Running;

use async_places::{Elsewhere, InPlace};

/// Sync operations run on a worker, async ones are polled in place.
#[derive(Clone, Copy, Debug)]
pub struct ByDefault;

/// The operation runs where its caller is, and may borrow.
#[derive(Clone, Copy, Debug)]
pub struct Inline;

/// The operation runs on a worker thread.
#[derive(Clone, Copy, Debug)]
pub struct OnWorker;

/// The operation runs as a task of the Tokio runtime around the call.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug)]
pub struct AsTask;

/// A place where the sync operation `F` can run. `L` is the function for late results, or `()`.
#[diagnostic::on_unimplemented(
    message = "a sync operation cannot run at the place `{Self}`",
    note = "a task runs async operations only, with `call_async` or `outcome_async`"
)]
pub trait SyncPlace<F, T, E, L>: Place {
    fn run<M: IntoReturn<Result<T, E>>>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> M::Output;
}

/// A place where the async operation `F`, which returns the future `Fut`, can run. `L` is the
/// function for late results, or `()`.
pub trait AsyncPlace<F, Fut, T, E, L>: Place {
    fn start<M>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> Self::Call<Result<T, E>, L, F, Fut, M>;

    #[allow(clippy::type_complexity)] // Each parameter is part of the call's type.
    fn poll<M: IntoReturn<Result<T, E>>>(
        call: Pin<&mut Self::Call<Result<T, E>, L, F, Fut, M>>,
        context: &mut Context<'_>,
    ) -> Poll<M::Output>;
}

/// Any place.
pub trait Place {
    /// The future of a call. Its type depends on the place alone, without a condition: so the
    /// compiler can always tell whether the future is `Send`.
    type Call<R, L, F, Fut, M>;
}

impl Place for ByDefault {
    type Call<R, L, F, Fut, M> = <Inline as Place>::Call<R, L, F, Fut, M>;
}

impl Place for Inline {
    type Call<R, L, F, Fut, M> = InPlace<R, L, F, Fut, M>;
}

impl Place for OnWorker {
    type Call<R, L, F, Fut, M> = Elsewhere<Self, R, L, F, Fut, M>;
}

#[cfg(feature = "tokio")]
impl Place for AsTask {
    type Call<R, L, F, Fut, M> = Elsewhere<Self, R, L, F, Fut, M>;
}

/// What a result means that is still wrapped with its function for late results.
fn of_guarded<T, E: Debug, L>(result: &LateGuard<Result<T, E>, L>) -> Returned<'_> {
    of_result(result.value())
}
