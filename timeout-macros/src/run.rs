//! Combines the options `run`, `cancel` and `grace` with the shape of the function.

use crate::errors::Errors;
use crate::shape::Shape;
use crate::slot::{Given, Slot};
use crate::values::{Place, Time};

/// Where the operation runs, and whether its token is cancelled at the limit.
pub(crate) enum Run {
    SyncWorker(Cancellation),
    SyncInline(Grace),
    AsyncInline(Grace),
    AsyncTask(Cancellation),
    AsyncWorker(Cancellation),
    /// A future that the function returns, polled in place.
    ReturnedFutureInline(Grace),
}

/// Whether the operation's token is cancelled at the limit.
pub(crate) enum Cancellation {
    AtLimit(Grace),
    Never,
}

/// How long after the cancellation a result still counts.
pub(crate) type Grace = Option<Given<Time>>;

impl Run {
    /// Combines `run`, `cancel` and `grace` with the shape of the function. Returns `None` if they
    /// contradict each other.
    pub(crate) fn of(
        run: &Slot<Place>,
        cancel: &Slot<bool>,
        grace: Slot<Time>,
        shape: Shape<'_>,
        errors: &mut Errors,
    ) -> Option<Self> {
        let cancels = cancel.given().is_none_or(|cancel| cancel.value);
        let place = match (run.given(), shape) {
            (Some(run), _) => run.value,
            (None, Shape::Sync(_)) => Place::Worker,
            (None, Shape::Async(_)) if !cancels => Place::Task,
            (None, Shape::Async(_) | Shape::Future(_)) => Place::Inline,
        };
        let grace = grace.take();
        if let (false, Some(grace)) = (cancels, &grace) {
            errors.add(
                &grace.word,
                "`grace` is the time after the cancellation, and `cancel = false` never cancels; drop one of them",
            );
        }
        let cancellation = if cancels {
            Cancellation::AtLimit(grace)
        } else {
            Cancellation::Never
        };
        let run = match (place, shape, cancellation) {
            (Place::Worker, Shape::Sync(_), cancellation) => Ok(Run::SyncWorker(cancellation)),
            (Place::Worker, Shape::Async(_), cancellation) => Ok(Run::AsyncWorker(cancellation)),
            (Place::Task, Shape::Async(_), cancellation) => Ok(Run::AsyncTask(cancellation)),
            (Place::Inline, Shape::Sync(_), Cancellation::AtLimit(grace)) => {
                Ok(Run::SyncInline(grace))
            }
            (Place::Inline, Shape::Async(_), Cancellation::AtLimit(grace)) => {
                Ok(Run::AsyncInline(grace))
            }
            (Place::Inline, Shape::Future(_), Cancellation::AtLimit(grace)) => {
                Ok(Run::ReturnedFutureInline(grace))
            }
            (Place::Task, Shape::Sync(_), _) => Err((
                run.typed(),
                "`run = \"task\"` takes an `async fn`; use `\"worker\"` or `\"inline\"`",
            )),
            (Place::Worker | Place::Task, Shape::Future(_), _) => Err((
                run.typed(),
                "a returned future runs inline, where its function has made it; write an `async fn` to run it elsewhere",
            )),
            (Place::Inline, Shape::Future(_), Cancellation::Never) => Err((
                cancel.typed(),
                "`cancel = false` lets the operation outlive its call, a returned future does not; write an `async fn`",
            )),
            (Place::Inline, _, Cancellation::Never) => Err((
                cancel.typed(),
                "`cancel = false` lets the operation outlive its call, `run = \"inline\"` does not; drop one of them",
            )),
        };
        run.map_err(|(at, message)| errors.add(at, message)).ok()
    }

    /// Whether the operation moves to a worker or a task, and must own its data.
    pub(crate) fn moves_away(&self) -> bool {
        !matches!(
            self,
            Self::SyncInline(_) | Self::AsyncInline(_) | Self::ReturnedFutureInline(_)
        )
    }

    /// Whether the operation keeps running after its limit without a cancellation.
    pub(crate) fn keeps_running(&self) -> bool {
        matches!(
            self,
            Self::SyncWorker(Cancellation::Never)
                | Self::AsyncTask(Cancellation::Never)
                | Self::AsyncWorker(Cancellation::Never)
        )
    }

    /// The grace period, if one is given.
    pub(crate) fn grace(&self) -> Option<&Given<Time>> {
        match self {
            Self::SyncInline(grace)
            | Self::AsyncInline(grace)
            | Self::ReturnedFutureInline(grace) => grace.as_ref(),
            Self::SyncWorker(cancellation)
            | Self::AsyncTask(cancellation)
            | Self::AsyncWorker(cancellation) => match cancellation {
                Cancellation::AtLimit(grace) => grace.as_ref(),
                Cancellation::Never => None,
            },
        }
    }
}
