//! Records [`metrics`](https://docs.rs/metrics): outcomes and durations of calls, and abandoned
//! operations.
//!
//! | name | kind | labels | description |
//! |---|---|---|---|
//! | `timeout_calls_total` | counter | `name`, `status` | calls that have ended |
//! | `timeout_call_duration_seconds` | histogram | `name`, `status` | time from the start of a call to its end; without calls that were not started |
//! | `timeout_late_endings_total` | counter | `name`, `status` | operations that ended after their call |
//! | `timeout_abandoned_operations` | gauge | `name` | operations that are still running after their call has ended |
//!
//! - `name` is the call's name, with control characters escaped. Names are constants of the
//!   program, so the number of label values is bounded.
//! - `status` of a call is `succeeded`, `failed`, `timed_out`, `deadline_exceeded`, `cancelled`,
//!   `not_started` or `dropped`.
//! - `status` of a late end is `abandoned_succeeded`, `abandoned_stopped` or `abandoned_failed`.
//!
//! ```
//! use timeout_runtime::integrations::metrics;
//! use timeout_runtime::{TimeoutError, timeout};
//!
//! #[timeout(name = "price", secs = 5)]
//! fn price() -> Result<u32, TimeoutError> {
//!     Ok(7)
//! }
//!
//! // Once, at the start of the program, after installing the recorder.
//! let _numbers = metrics::record_events();
//! assert_eq!(price()?, 7); // timeout_calls_total{name="price",status="succeeded"} 1
//! # Ok::<(), TimeoutError>(())
//! ```
//!
//! # Local recorders
//!
//! `metrics::with_local_recorder` installs a recorder for one thread, and `metrics` cannot pass it
//! to another thread. The local recorder gets the outcomes of the calls that its thread makes. Late
//! events, and metrics that operations record on workers and in tasks, go to the global recorder.
//! The gauge of the local recorder therefore never decreases.
//!
//! A propagator installs a `'static` recorder for these operations, too:
//!
//! ```
//! use std::cell::Cell;
//! use ::metrics::NoopRecorder; // or another recorder
//! use timeout_runtime::add_propagator;
//!
//! thread_local! {
//!     static RECORDER: Cell<Option<&'static NoopRecorder>> = const { Cell::new(None) };
//! }
//!
//! let _recorders = add_propagator(|| {
//!     let recorder = RECORDER.get();
//!     move || recorder.map(|recorder| ::metrics::set_default_local_recorder(recorder))
//! });
//! RECORDER.set(Some(&NoopRecorder));
//! ```

use ::metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::call::abandoned;
use crate::event::listener::add_listener;
use crate::event::{Event, EventKind};
use crate::one_line::OneLine;
use crate::registry::Registration;

const CALLS: &str = "timeout_calls_total";
const DURATION: &str = "timeout_call_duration_seconds";
const LATE: &str = "timeout_late_endings_total";
const ABANDONED: &str = "timeout_abandoned_operations";

/// Records every event of this process from now on, and describes the metrics to the recorder.
///
/// Call it once: a second listener records every event again. Dropping the handle stops the
/// recording; the gauge keeps its last value.
///
/// Install the recorder first. Without a recorder, counts are lost. In a recorder that is installed
/// later, the gauge of a name is correct from the next event that changes it. The gauge also counts
/// operations that were abandoned before this call.
pub fn record_events() -> Registration {
    describe_counter!(CALLS, Unit::Count, "Calls that have ended.");
    describe_histogram!(
        DURATION,
        Unit::Seconds,
        "Time from the start of a call to its end."
    );
    describe_counter!(LATE, Unit::Count, "Operations that ended after their call.");
    describe_gauge!(
        ABANDONED,
        Unit::Count,
        "Operations that are still running after their call has ended."
    );
    let listener = add_listener(record);
    for name in abandoned::names() {
        set_gauge(name);
    }
    listener
}

fn record(event: &Event<'_>) {
    let name = || OneLine(event.name).into_text();
    let status = event.kind.as_str();
    let is_late = matches!(
        event.kind,
        EventKind::AbandonedWorkerSucceeded
            | EventKind::AbandonedWorkerStopped(_)
            | EventKind::AbandonedWorkerFailed(_)
    );
    if is_late {
        counter!(LATE, "name" => name(), "status" => status).increment(1);
        set_gauge(event.name);
        return;
    }
    counter!(CALLS, "name" => name(), "status" => status).increment(1);
    if !matches!(event.kind, EventKind::NotStarted(_)) {
        histogram!(DURATION, "name" => name(), "status" => status).record(event.elapsed);
    }
    match event.kind {
        EventKind::Succeeded | EventKind::Failed(_) | EventKind::NotStarted(_) => {}
        // A name without abandoned operations gets no gauge.
        _ if abandoned::count_of(event.name) == 0 => {}
        _ => set_gauge(event.name),
    }
}

/// Sets the gauge to the number of abandoned operations called `name`.
///
/// The number changes before the event is emitted. Reading it again after the gauge is set closes a
/// race: if several threads set the gauge, the last value is correct.
fn set_gauge(name: &'static str) {
    let gauge = gauge!(ABANDONED, "name" => OneLine(name).into_text());
    let mut count = abandoned::count_of(name);
    loop {
        gauge.set(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        let now = abandoned::count_of(name);
        if now == count {
            return;
        }
        count = now;
    }
}
