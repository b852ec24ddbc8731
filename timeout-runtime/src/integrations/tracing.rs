//! Integrates [`tracing`](https://docs.rs/tracing): [`propagate_spans`] runs operations inside their
//! caller's span, and [`record_events`] records outcomes as `tracing` events. Each lasts until its
//! handle is dropped.
//!
//! ```
//! use timeout_runtime::integrations::tracing;
//! use timeout_runtime::{TimeoutError, timeout};
//!
//! #[timeout(name = "price", secs = 5)]
//! fn price() -> Result<u32, TimeoutError> {
//!     ::tracing::info!("looked up"); // on a worker, inside the span `order`
//!     Ok(7)
//! }
//!
//! // Once, at the start of the program.
//! let _spans = tracing::propagate_spans();
//! let _events = tracing::record_events();
//!
//! let order = ::tracing::info_span!("order").entered();
//! assert_eq!(price()?, 7);
//! # Ok::<(), TimeoutError>(())
//! ```
//!
//! Spans that are attached to a future with `instrument` need [`propagate_spans`] too, if the async
//! call runs as a task or on a worker. Such a call starts when its future is first polled, inside
//! that span.

use ::tracing::{Dispatch, Level, Span, dispatcher, event, field};

use crate::context::propagator::add_propagator;
use crate::event::listener::add_listener;
use crate::event::{Event, EventKind, Failure};
use crate::one_line::OneLine;
use crate::registry::Registration;

/// Makes operations on workers and in tasks run inside the span of their caller.
///
/// They also use the caller's default subscriber, including a scoped one. A task enters the span at
/// each poll. The operation exits the span and drops its handle before the caller gets the result,
/// so the span closes when the caller closes it. An abandoned operation keeps the span open until
/// it ends.
pub fn propagate_spans() -> Registration {
    add_propagator(|| {
        let span = Span::current();
        let dispatch = dispatcher::get_default(Dispatch::clone);
        move || {
            let dispatch = dispatcher::set_default(&dispatch);
            // Tuple fields drop in order: the span exits before the subscriber is restored.
            (span.clone().entered(), dispatch)
        }
    })
}

/// Records every event of this process from now on, until the handle is dropped.
///
/// The outcome of a call is recorded on the caller's thread, inside its span. A late event is
/// recorded on the operation's thread, and with [`propagate_spans`] inside the caller's span.
///
/// | level | message |
/// |---|---|
/// | `DEBUG` | `succeeded`, `dropped`, `abandoned_stopped` |
/// | `INFO` | `cancelled` |
/// | `WARN` | `failed` with an error, `timed_out`, `deadline_exceeded`, `not_started`, `abandoned_succeeded`, `abandoned_failed` with an error |
/// | `ERROR` | `failed` and `abandoned_failed` with a panic |
///
/// The target is `timeout_runtime`. The fields are:
///
/// - `name`: the name of the call, with control characters escaped
/// - `call`: the id of the call
/// - `elapsed`: the time since the start of the call
/// - `limit`, `worker`: if present in the event
/// - `failure`: the text of the error or the panic
/// - `cause`: why the call was not started
pub fn record_events() -> Registration {
    add_listener(record)
}

fn record(event: &Event<'_>) {
    let name = OneLine(event.name).into_text();
    macro_rules! record_at {
        ($level:expr) => {
            event!(
                target: "timeout_runtime",
                $level,
                name = &*name,
                call = u64::from(event.call),
                elapsed = field::debug(event.elapsed),
                limit = event.limit.map(field::debug),
                worker = event.worker.map(field::display),
                failure = failure(&event.kind).map(field::display),
                cause = cause(&event.kind).map(field::display),
                "{}",
                event.kind.as_str(),
            )
        };
    }
    match &event.kind {
        EventKind::Succeeded | EventKind::Dropped | EventKind::AbandonedWorkerStopped(_) => {
            record_at!(Level::DEBUG);
        }
        EventKind::Cancelled => record_at!(Level::INFO),
        EventKind::Failed(Failure::Panic(_))
        | EventKind::AbandonedWorkerFailed(Failure::Panic(_)) => record_at!(Level::ERROR),
        EventKind::Failed(_)
        | EventKind::TimedOut
        | EventKind::DeadlineExceeded
        | EventKind::NotStarted(_)
        | EventKind::AbandonedWorkerSucceeded
        | EventKind::AbandonedWorkerFailed(_) => record_at!(Level::WARN),
    }
}

fn failure<'a>(kind: &'a EventKind<'a>) -> Option<&'a Failure<'a>> {
    match kind {
        EventKind::Failed(failure)
        | EventKind::AbandonedWorkerStopped(failure)
        | EventKind::AbandonedWorkerFailed(failure) => Some(failure),
        _ => None,
    }
}

fn cause(kind: &EventKind<'_>) -> Option<crate::outcome::Cause> {
    match kind {
        EventKind::NotStarted(cause) => Some(*cause),
        _ => None,
    }
}
