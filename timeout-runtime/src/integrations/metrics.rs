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
//! the global recorder, where the gauge then falls although it has risen in the local one.
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

use std::collections::HashSet;
use std::sync::Mutex;

use ::metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::event::listener::{ListenerHandle, add_listener};
use crate::event::{CallId, Event, EventKind};
use crate::one_line::OneLine;
use crate::sync::lock;
use crate::workers::abandoned;

const CALLS: &str = "timeout_calls_total";
const DURATION: &str = "timeout_call_duration_seconds";
const LATE: &str = "timeout_late_endings_total";
const ABANDONED: &str = "timeout_abandoned_operations";

/// Counts every event of this process from now on, and describes the numbers to the recorder that is there now. To be called once: a second time counts
/// everything twice.
///
/// The gauge has the operations that are abandoned from now on. When the listener is removed, it stays as it is. Install the recorder first: without one the numbers go
/// nowhere, and one that comes later sees operations end, and the gauge fall, whose beginning it has not seen.
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
    let counted = Mutex::new(HashSet::new());
    add_listener(move |event| record(event, &counted))
}

/// `counted` has the calls whose operations are in the gauge.
fn record(event: &Event<'_>, counted: &Mutex<HashSet<CallId>>) {
    let name = || OneLine(event.name).into_text();
    let status = event.kind.as_str();
    if !event.kind.is_verdict() {
        counter!(LATE, "name" => name(), "status" => status).increment(1);
        let was_counted = lock(counted).remove(&event.call);
        if was_counted {
            gauge!(ABANDONED, "name" => name()).decrement(1);
        }
        return;
    }
    counter!(CALLS, "name" => name(), "status" => status).increment(1);
    if !matches!(event.kind, EventKind::NotStarted(_)) {
        histogram!(DURATION, "name" => name(), "status" => status).record(event.elapsed);
    }
    // An operation is listed before its call's verdict is told, and its late ending is told after that.
    if abandoned::has(event.call) {
        lock(counted).insert(event.call);
        gauge!(ABANDONED, "name" => name()).increment(1);
    }
}
