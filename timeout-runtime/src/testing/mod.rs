//! Tests of code with limits: virtual time, and a cancellation at each place where one can come.

mod cancel;
mod clock;
mod thread;
mod watcher;

pub use cancel::{CancelPoint, cancel_at_check, cancel_at_every_check};
pub use cancel::{cancel_at_check_async, cancel_at_every_check_async};
pub use clock::TestClock;
pub use thread::TestThread;
