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
#[path = "private/options.rs"]
pub mod __timeout_options;
#[doc(hidden)]
#[path = "private/mod.rs"]
pub mod __timeout_runtime;
mod call;
mod context;
mod event;
mod forked;
pub mod integrations;
pub mod limits;
mod memory;
#[cfg(not(target_family = "wasm"))]
pub mod net;
mod one_line;
mod outcome;
mod pool;
#[cfg(feature = "test-util")]
mod probe;
#[cfg(not(feature = "test-util"))]
#[path = "probe/absent.rs"]
mod probe;
mod registry;
mod shards;
mod sync;
mod terms;
#[cfg(feature = "test-util")]
#[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
pub mod testing;
#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests;
mod threads;
mod time;
mod timeout;
mod timer;
mod token;
mod unwind;
pub mod workers;

#[cfg(feature = "tokio")]
pub use call::tasks::CallTasks;
pub use context::propagator::add_propagator;
pub use context::{CallContext, check};
pub use event::listener::add_listener;
pub use event::{CallId, Event, EventKind, Failure, WorkerName};
pub use outcome::{CallStatus, Cause, InvalidLimit, Outcome, TimeoutError};
pub use outcome::{FromTimeout, Returned, panic_on_timeout};
pub use registry::Registration;
pub use time::{Deadline, InvalidDeadline};
pub use timeout::Timeout;
pub use timeout::within::{TimeoutFutureExt, within, within_blocking};
pub use token::{CancelToken, DropGuard};

#[cfg(feature = "macros")]
pub use timeout_macros::timeout;
