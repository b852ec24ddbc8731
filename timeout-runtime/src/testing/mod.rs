//! Tests of code with limits: virtual time.

mod clock;
mod thread;
mod watcher;

pub use clock::TestClock;
pub use thread::TestThread;
