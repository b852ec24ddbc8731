//! [`TestThread`]: the handle of a thread that a test has started on a test clock.

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;

use crate::sync::lock;
use crate::threads::parking::CurrentParker;
use crate::time::test_clock::{Kind, Order, Participant};
use crate::time::{Clock, Tick};
use crate::unwind;

use super::TestClock;

/// A thread on a [`TestClock`], created by [`TestClock::spawn`]. Dropping it detaches the thread.
#[must_use = "`join` waits for the thread"]
pub struct TestThread<T> {
    shared: Arc<Mutex<Shared<T>>>,
}

struct Shared<T> {
    is_finished: bool,
    result: Option<thread::Result<T>>,
    joiner: Option<Waker>,
}

/// Starts a thread that runs `f` on `clock`.
pub(super) fn spawn<T, F>(
    clock: TestClock,
    place: &'static Location<'static>,
    f: F,
) -> TestThread<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let shared = Arc::new(Mutex::new(Shared {
        is_finished: false,
        result: None,
        joiner: None,
    }));
    let participant = Participant::join(clock.clock(), Kind::Test("spawn", place));
    let handle = TestThread {
        shared: Arc::clone(&shared),
    };
    thread::spawn(move || {
        let result = {
            let _on_clock = participant.enter();
            unwind::catch(f)
        };
        let joiner = {
            let mut shared = lock(&*shared);
            shared.is_finished = true;
            shared.result = Some(result);
            shared.joiner.take()
        };
        if let Some(joiner) = joiner {
            joiner.wake();
        }
        // The thread that joins it runs by now.
        drop(participant);
        drop(clock);
    });
    handle
}

impl<T> TestThread<T> {
    /// Whether the thread has finished.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        lock(&*self.shared).is_finished
    }

    /// Waits for the thread. This is a wait of this crate: on a [`TestClock`], time can move.
    ///
    /// # Errors
    ///
    /// The payload of the thread's panic, as [`JoinHandle::join`](std::thread::JoinHandle::join).
    pub fn join(self) -> thread::Result<T> {
        let clock = Clock::of_thread();
        let parker = CurrentParker::get();
        loop {
            {
                let mut shared = lock(&*self.shared);
                if let Some(result) = shared.result.take() {
                    return result;
                }
                shared.joiner = Some(parker.waker().clone());
            }
            parker.park_on(clock, Tick::NEVER, Order::NONE);
        }
    }
}

impl<T> fmt::Debug for TestThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestThread")
            .field("is_finished", &self.is_finished())
            .finish()
    }
}
