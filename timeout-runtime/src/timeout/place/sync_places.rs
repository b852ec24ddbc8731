//! What a sync operation must be for each place, and how it runs there.

use std::fmt::Debug;

use crate::call::convert::IntoReturn;
use crate::call::inline;
use crate::call::late_value::{LateFunction, disarm, guard_operation};
use crate::call::options::CallOptions;
use crate::call::worker;
use crate::token::CancelToken;

use super::{ByDefault, Inline, OnWorker, SyncPlace, of_guarded};

impl<F, T, E, L> SyncPlace<F, T, E, L> for ByDefault
where
    OnWorker: SyncPlace<F, T, E, L>,
{
    fn run<M: IntoReturn<Result<T, E>>>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> M::Output {
        OnWorker::run(options, late, op, convert)
    }
}

impl<F, T, E, L> SyncPlace<F, T, E, L> for Inline
where
    F: FnOnce(CancelToken) -> Result<T, E>,
    E: Debug,
    L: LateFunction<Result<T, E>>,
{
    fn run<M: IntoReturn<Result<T, E>>>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> M::Output {
        let op = guard_operation(late.on_late(), op);
        disarm(convert).into_return(inline::sync_inline(options, of_guarded, op))
    }
}

impl<F, T, E, L> SyncPlace<F, T, E, L> for OnWorker
where
    F: FnOnce(CancelToken) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: Debug + Send + 'static,
    L: LateFunction<Result<T, E>> + Send + 'static,
{
    fn run<M: IntoReturn<Result<T, E>>>(
        options: CallOptions,
        late: L,
        op: F,
        convert: M,
    ) -> M::Output {
        let op = guard_operation(late.on_late(), op);
        disarm(convert).into_return(worker::sync_worker(options, of_guarded, op))
    }
}
