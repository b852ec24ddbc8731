//! Numbers for [`metrics`](https://docs.rs/metrics): how many calls end in which way, how long they take, and what is left running.
//!
//! | name | kind | labels | what |
//! |---|---|---|---|
//! | `timeout_calls_total` | counter | `name`, `status` | calls that have ended |
//! | `timeout_call_duration_seconds` | histogram | `name`, `status` | how long after its start a call ended; not of calls that were not started |
//! | `timeout_late_endings_total` | counter | `name`, `status` | operations that ended after their call |
//! | `timeout_abandoned_operations` | gauge | `name` | operations that still run although their call has ended |
//!
//! `name` is the call's name on one line: control characters in it are escaped. Names are written in the program, so their number is bounded. `status` is `succeeded`, `failed`, `timed_out`, `deadline_exceeded`,
//! `cancelled`, `not_started` or `dropped` for calls, `abandoned_succeeded` or `abandoned_failed` for late endings.
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
//! // Once, at the start of the program, after the recorder was installed.
//! let _numbers = metrics::record_endings();
//! assert_eq!(price()?, 7); // timeout_calls_total{name="price",status="succeeded"} 1
//! # Ok::<(), TimeoutError>(())
//! ```
//!
//! # Local recorders
//!
//! `metrics::with_local_recorder` installs a recorder on one thread, and `metrics` cannot hand it to
//! another. The local recorder gets the outcomes of the calls that its thread makes. It does not get
//! their late endings, nor what operations record themselves on workers and in tasks: those go to
//! the global recorder, so the gauge of the local one does not fall.
//! A propagator installs a `'static` recorder there, too:
//!
//! ```
//! use std::cell::Cell;
//! use ::metrics::NoopRecorder; // or another one
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

use crate::event::listener::{ListenerHandle, add_listener};
use crate::event::{Event, EventKind};
use crate::one_line::OneLine;
use crate::workers::abandoned;

const CALLS: &str = "timeout_calls_total";
const DURATION: &str = "timeout_call_duration_seconds";
const LATE: &str = "timeout_late_endings_total";
const ABANDONED: &str = "timeout_abandoned_operations";

/// Counts every event of this process from now on, and describes the numbers to the installed recorder. Call it once: a second
/// listener counts every event again.
///
/// The gauge shows all operations that are abandoned, also those from before. When the listener is removed, the gauge keeps its
/// value. Install the recorder first: without one, counts are lost. In a recorder that is installed later, the gauge of a name is
/// right from the next event of that name that changes it.
pub fn record_endings() -> ListenerHandle {
    describe_counter!(CALLS, Unit::Count, "Calls that have ended.");
    describe_histogram!(
        DURATION,
        Unit::Seconds,
        "How long after its start a call ended."
    );
    describe_counter!(LATE, Unit::Count, "Operations that ended after their call.");
    describe_gauge!(
        ABANDONED,
        Unit::Count,
        "Operations that still run although their call has ended."
    );
    let listener = add_listener(record);
    for name in abandoned::names() {
        show_abandoned(name);
    }
    listener
}

fn record(event: &Event<'_>) {
    let name = || OneLine(event.name).into_text();
    let status = event.kind.as_str();
    if !event.kind.is_verdict() {
        counter!(LATE, "name" => name(), "status" => status).increment(1);
        show_abandoned(event.name);
        return;
    }
    counter!(CALLS, "name" => name(), "status" => status).increment(1);
    if !matches!(event.kind, EventKind::NotStarted(_)) {
        histogram!(DURATION, "name" => name(), "status" => status).record(event.elapsed);
    }
    match event.kind {
        EventKind::Succeeded | EventKind::Failed(_) | EventKind::NotStarted(_) => {}
        // A name without late endings gets no gauge.
        _ if abandoned::count_of(event.name) == 0 => {}
        _ => show_abandoned(event.name),
    }
}

/// Sets the gauge to the number of abandoned operations called `name`. That number changes before the
/// event that leads here, and is read again after it was set: of several threads, the last to set the
/// gauge sets it right.
fn show_abandoned(name: &'static str) {
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
