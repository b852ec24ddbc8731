//! [`Row`]: the rows of the table, and their targets.

use Target::{AtLeast, AtMost, None, PerCall};

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) target: Target,
}

/// The target for the median over the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// At most so many per call, with a tolerance of one in a thousand.
    ///
    /// It covers rare events, such as the start of a second worker.
    PerCall(f64),
    /// No target: the row is informative.
    None,
}

impl Target {
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
            Self::PerCall(most) => value <= most * 1.001,
            Self::None => true,
        }
    }
}

const fn row(name: &'static str, target: Target, what: &'static str) -> Row {
    Row { name, what, target }
}

/// The rows, in the order of the table. "A / B" is our figure in situation A, divided by that of B.
#[rustfmt::skip] // a row is a line
pub(crate) const ROWS: &[Row] = &[
    row("S1", AtMost(0.65), "1 caller / rayon::spawn and crossbeam-channel"),
    row("S1e", None, "1 caller, with a listener / rayon::spawn and crossbeam-channel"),
    row("S2", AtMost(0.10), "1 caller / Tokio's timeout(spawn_blocking) in block_on"),
    row("S2e", None, "1 caller, with a listener / Tokio's timeout(spawn_blocking) in block_on"),
    row("S3", AtMost(0.04), "1 caller / a thread per call"),
    row("S4", AtMost(4.5), "1 caller / two threads that spin"),
    row("S5", AtMost(1.15), "no spinning, 1 caller / two threads that park"),
    row("S6a", AtMost(1.0), "no spinning, 1 caller / Tokio"),
    row("S6b", AtMost(0.42), "no spinning, 1 caller / a thread per call"),
    row("S7a", AtMost(1.5), "2 callers / two pairs of threads that park"),
    row("S7b", AtMost(0.35), "2 callers / Tokio"),
    row("S8a", AtMost(0.3), "8 callers / Tokio"),
    row("S8b", AtMost(0.07), "8 callers / a thread per call"),
    row("S8c", AtMost(0.3), "64 callers / Tokio"),
    row("S8d", AtMost(0.07), "64 callers / a thread per call"),
    row("S9a", AtMost(0.3), "64 callers, 99 of 100 calls / Tokio"),
    row("S9b", AtMost(4.0), "64 callers, longest call / Tokio"),
    row("S10a", AtMost(0.7), "100 µs of work, on top of it / Tokio"),
    row("S10b", AtMost(0.35), "100 µs of work, on top of it / a thread per call"),
    row("S11a", AtMost(1.15), "1 ms of sleep, on top of it / Tokio"),
    row("S11b", AtMost(0.65), "1 ms of sleep, on top of it / a thread per call"),
    row("S12a", AtLeast(0.88), "64 callers, 1 ms of sleep, throughput / no limit"),
    row("S12b", AtLeast(3.0), "64 callers, 1 ms of sleep, throughput / a thread per call"),
    row("S13", AtMost(64.0), "64 callers, 1 ms of sleep: threads besides the callers"),
    row("S14a", AtMost(1.25), "limit of 1 ms, operation stops: lateness / park_timeout"),
    row("S14b", AtMost(1.25), "limit of 1 ms, operation continues: lateness / park_timeout"),
    row("S14c", AtMost(0.12), "limit of 1 ms, operation stops: lateness / Tokio"),
    row("S14d", AtMost(0.12), "limit of 1 ms, operation continues: lateness / Tokio"),
    row("S15a", PerCall(1.0), "allocations of a call"),
    row("S15b", PerCall(128.0), "bytes of a call besides argument and result"),
    row("S16a", AtMost(0.3), "1 caller, processor time / Tokio"),
    row("S16b", AtMost(1.3), "a call each ms, processor time / two threads that park"),
    row("S16c", AtMost(0.7), "beside 2 busy threads, processor time / Tokio"),
    row("A1a", AtMost(0.85), "ready, current_thread / Tokio's timeout"),
    row("A1b", AtMost(0.85), "ready, multi_thread / Tokio's timeout"),
    row("A1e", AtMost(2.5), "ready, current_thread, with a listener / Tokio's timeout"),
    row("A2", AtMost(0.75), "pending once, current_thread / Tokio's timeout"),
    row("A2e", None, "pending once, current_thread, with a listener / Tokio's timeout"),
    row("A3", AtMost(0.45), "pending once, multi_thread / Tokio's timeout"),
    row("A4", AtMost(1.01), "1 ms of sleep / the sleep alone"),
    row("A5a", AtMost(0.0), "allocations of a call, ready"),
    row("A5b", AtMost(0.0), "allocations of a call, pending once"),
    row("A6a", AtMost(1.3), "100 000 pending, memory on top of the task / Tokio's timeout"),
    row("A6b", AtMost(1.0), "100 000 pending, from the deadline to the last call's end / Tokio's timeout"),
    row("A6c", AtMost(1.3), "100 000 pending, dropped / Tokio's timeout"),
    row("A7", AtMost(1.3), "a poll of a call, on top of the operation / task_local! scope"),
    row("A8", AtMost(0.2), "limit of 1 ms: lateness / Tokio's timeout"),
    row("A9", AtMost(1.0), "ready, limit of 50 ms / Tokio's timeout"),
    row("A9e", AtMost(2.5), "ready, limit of 50 ms, with a listener / Tokio's timeout"),
    row("A10", AtMost(0.5), "token checked / tokio-util's token and Tokio's timeout"),
    row("A10e", None, "token checked, with a listener / tokio-util's token and Tokio's timeout"),
    row("A11", AtMost(1.5), "nested in one / two nested timeouts of Tokio"),
    row("A11e", None, "nested in one, with a listener / two nested timeouts of Tokio"),
    row("P1a", AtMost(1.1), "ready: 2 threads / 1 thread"),
    row("P1b", None, "ready: 8 threads / 1 thread"),
    row("P2a", AtMost(1.1), "ready, with a listener: 2 threads / 1 thread"),
    row("P2b", None, "ready, with a listener: 8 threads / 1 thread"),
    row("P3a", AtMost(1.1), "limit of 50 ms: 2 threads / 1 thread"),
    row("P3b", None, "limit of 50 ms: 8 threads / 1 thread"),
    row("P4a", AtMost(1.1), "limit of 50 ms, with a listener: 2 threads / 1 thread"),
    row("P4b", None, "limit of 50 ms, with a listener: 8 threads / 1 thread"),
    row("P5a", AtMost(1.1), "token checked: 2 threads / 1 thread"),
    row("P5b", None, "token checked: 8 threads / 1 thread"),
    row("P6a", AtMost(1.1), "token checked, with a listener: 2 threads / 1 thread"),
    row("P6b", None, "token checked, with a listener: 8 threads / 1 thread"),
    row("P7a", AtMost(1.1), "nested in one: 2 threads / 1 thread"),
    row("P7b", None, "nested in one: 8 threads / 1 thread"),
    row("P8a", AtMost(1.1), "nested in one, with a listener: 2 threads / 1 thread"),
    row("P8b", None, "nested in one, with a listener: 8 threads / 1 thread"),
    row("P9a", AtMost(1.1), "pending once: 2 threads / 1 thread"),
    row("P9b", None, "pending once: 8 threads / 1 thread"),
    row("P10a", AtMost(1.1), "pending once, with a listener: 2 threads / 1 thread"),
    row("P10b", None, "pending once, with a listener: 8 threads / 1 thread"),
    row("T1a", AtMost(1.2), "is_cancelled, 1 thread / an acquire load"),
    row("T1b", AtMost(1.2), "is_cancelled, 2 threads / an acquire load"),
    row("T1c", AtMost(1.2), "is_cancelled of a grandchild, 1 thread / an acquire load"),
    row("T1d", AtMost(1.2), "is_cancelled of a grandchild, 2 threads / an acquire load"),
    row("T2a", AtMost(0.12), "is_cancelled, 1 thread / tokio-util"),
    row("T2b", AtMost(0.02), "is_cancelled, 2 threads / tokio-util"),
    row("T3", AtMost(0.35), "timeout_runtime::check() / tokio-util's is_cancelled"),
    row("T4a", AtMost(0.9), "child and its drop, 1000 siblings / tokio-util"),
    row("T4b", AtMost(0.75), "new and its drop / tokio-util"),
    row("T4c", AtMost(0.5), "clone and its drop / tokio-util"),
    row("T5a", AtMost(1.0), "cancel 1000 children / tokio-util"),
    row("T5b", AtMost(1.0), "cancel 100 000 children / tokio-util"),
    row("T5c", AtMost(0.8), "wake 100 000 waiting futures / tokio-util"),
    row("T6", AtMost(0.05), "longest is_cancelled while 100 000 children are cancelled / tokio-util"),
    row("T7a", AtMost(0.0), "chains of 10 000 tokens that overflow a stack of 64 KiB"),
    row("T7b", AtMost(0.0), "chains of 1 000 000 tokens that overflow a stack of 64 KiB"),
    row("J1a", None, "1 caller / Java's virtual thread and join"),
    row("J1b", None, "no spinning, 1 caller / Java's virtual thread and join"),
];
