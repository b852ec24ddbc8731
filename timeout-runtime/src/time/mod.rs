//! Time: ticks, the clocks that read them, and deadlines.

mod clock;
mod clock_hold;
mod coarse;
mod deadline;
pub(crate) mod tick;

pub(crate) use clock::Clock;
pub(crate) use clock_hold::ClockHold;
pub use deadline::{Deadline, InvalidDeadline};
pub(crate) use tick::Tick;
