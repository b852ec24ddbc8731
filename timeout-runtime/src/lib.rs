#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
compile_error!(
    "timeout-runtime needs a clock, and this target has none in the standard library: \
     build for `wasm32-wasip1`, or depend on timeout-runtime on other targets only, under \
     `[target.'cfg(not(all(target_family = \"wasm\", target_os = \"unknown\")))'.dependencies]`"
);

#[doc(hidden)]
#[path = "options.rs"]
pub mod __timeout_options;
#[doc(hidden)]
#[path = "private.rs"]
pub mod __timeout_runtime;
mod alarm;
mod background;
mod call;
mod clock_hold;
mod context;
mod deadline;
mod error;
mod event;
mod forked;
mod frame;
pub mod integrations;
mod memory;
mod muted;
mod one_line;
mod outcome;
mod parking;
mod policy;
mod propagator;
mod registry;
mod returns;
mod sync;
mod terms;
mod threads;
mod tick;
mod timeout;
mod timer;
mod token;
mod unwind;
pub mod workers;

pub use context::{CallContext, Scope, check, is_cancelled};
pub use deadline::{Deadline, InvalidDeadline};
pub use error::{Cause, InvalidLimit, TimeoutError};
pub use event::clock::TimestampClock;
pub use event::listener::{ListenerHandle, add_listener};
pub use event::{CallId, Event, EventKind, Failure, WorkerName};
pub use outcome::{CallStatus, Outcome};
pub use propagator::{PropagatorHandle, add_propagator};
pub use returns::{Ending, FromTimeout, panic_on_timeout};
pub use timeout::within::{TimeoutFutureExt, Within, within, within_blocking};
pub use timeout::{Runner, Timeout, place};
pub use token::{CancelToken, Cancelled, CancelledOwned, DropGuard, Registration};

#[cfg(feature = "macros")]
pub use timeout_macros::timeout;
