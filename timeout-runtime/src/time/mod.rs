//! Time: ticks, the clocks that read them, and deadlines.

mod clock;
mod clock_hold;
mod coarse;
mod deadline;
#[cfg(feature = "test-util")]
pub(crate) mod test_clock;
#[cfg(not(feature = "test-util"))]
#[path = "test_clock/absent.rs"]
pub(crate) mod test_clock;
pub(crate) mod tick;

pub(crate) use clock::Clock;
pub(crate) use clock_hold::ClockHold;
pub use deadline::{Deadline, InvalidDeadline};
pub(crate) use test_clock::Order;
pub(crate) use tick::Tick;
