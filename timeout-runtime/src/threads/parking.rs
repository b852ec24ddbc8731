//! [`Parker`]: blocks a thread until it is unparked. [`block_on`] polls a future on it.
//!
//! ```text
//!   empty ──── park ────► parked ──── unpark ────► woken
//!     ▲ │                                          │ ▲
//!     │ └──────────────── unpark ──────────────────┼─┘
//!     └──────────────────── park ──────────────────┘
//! ```
//!
//! 1. A wake-up is never lost: `unpark` before `park` makes that `park` return immediately.
//! 2. Our waits do not use `std::thread::park`. It has one wake-up per thread, so our waits could
//!    consume a wake-up of other code, and other code could consume ours.
//! 3. A thread lends its parker to one wait at a time. A wait inside a poll of another wait gets a
//!    new parker, so it cannot consume the wake-up of the outer wait.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::sync::{Condvar, Lock, Mutex, const_thread_local, lock};
#[cfg(feature = "test-util")]
use crate::time::test_clock::Here;
use crate::time::{Clock, Order, Tick};
use crate::unwind;

#[cfg(feature = "test-util")]
mod on_test_clock;

/// The longest single park. A longer wait parks again.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

enum State {
    Empty,
    Parked,
    /// Parked as this participant of a test clock.
    #[cfg(feature = "test-util")]
    Waiting(Here),
    Woken,
}

/// Blocks one thread until it is unparked.
pub(crate) struct Parker {
    state: Mutex<State>,
    wakes: Condvar,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State::Empty),
            wakes: Condvar::default(),
        }
    }

    /// Parks until unparked, or until `until` on the system clock. May return early.
    pub(crate) fn park_until(&self, until: Tick) {
        let longest = if until.is_never() {
            None
        } else {
            let left = until.since(Tick::now());
            if left.is_zero() {
                return;
            }
            Some(left.min(LONGEST))
        };
        let mut state = lock(&self.state);
        if matches!(*state, State::Empty) {
            *state = State::Parked;
            state = self.wakes.wait(&self.state, state, longest);
        }
        *state = State::Empty;
    }

    /// Wakes the thread, or makes its next park return immediately.
    pub(crate) fn unpark(&self) {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, State::Woken) {
            State::Empty | State::Woken => return,
            State::Parked => {}
            // Under the lock, so that the participant runs from here on.
            #[cfg(feature = "test-util")]
            State::Waiting(participant) => participant.wake(),
        }
        drop(state);
        self.wakes.notify_one();
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

/// A parker and its waker.
struct Parking {
    parker: Arc<Parker>,
    waker: Waker,
}

const_thread_local! {
    /// The parker of this thread; `None` while a wait uses it.
    static PARKING: Cell<Option<Parking>> = Cell::new(None);
}

/// The parker of one wait of the current thread.
pub(crate) struct CurrentParker(Option<Parking>);

impl CurrentParker {
    /// Takes the thread's parker, or creates a new one inside another wait.
    pub(crate) fn get() -> Self {
        let lent = PARKING.try_with(Cell::take).ok().flatten();
        Self(Some(lent.unwrap_or_else(|| {
            let parker = Arc::new(Parker::new());
            let waker = Arc::clone(&parker).into();
            Parking { parker, waker }
        })))
    }

    fn parking(&self) -> &Parking {
        match &self.0 {
            Some(parking) => parking,
            None => unreachable!("only `drop` takes the parker"),
        }
    }

    /// Returns the waker that unparks this wait.
    pub(crate) fn waker(&self) -> &Waker {
        &self.parking().waker
    }

    /// See [`Parker::park_until`].
    #[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
    pub(crate) fn park_until(&self, until: Tick) {
        self.parking().parker.park_until(until);
    }

    /// As `park_until`, until `until` on `clock`. `order` is that of the alarm on a test clock.
    pub(crate) fn park_on(&self, clock: Clock, until: Tick, order: Order) {
        let Parking { parker, waker } = self.parking();
        match clock {
            #[cfg(feature = "test-util")]
            Clock::Test(id) => parker.park_on_test_clock(id, until, order, waker),
            _ => {
                let _ = (waker, order);
                parker.park_until(until);
            }
        }
    }
}

impl Drop for CurrentParker {
    fn drop(&mut self) {
        // Fails only while the thread is being torn down. Then no later wait needs the parker.
        let _ = PARKING.try_with(|parking| parking.set(self.0.take()));
    }
}

/// Returns a function that tells whether a waker is one of our parkers, whose `wake` cannot block.
/// `false` can be wrong.
pub(crate) fn unparks() -> impl Fn(&Waker) -> bool {
    let ours = CurrentParker::get().waker().vtable();
    move |waker| waker.vtable() == ours
}

/// Stores `waker` in the `place` inside `mutex`, unless the waker there wakes the same task.
///
/// Returns `false` if the place no longer exists. Clones and drops wakers outside the lock, because
/// both run user code.
pub(crate) fn replace_waker<L: Lock>(
    mutex: &L,
    place: impl Fn(&mut L::Inside) -> Option<&mut Option<Waker>>,
    waker: &Waker,
) -> bool {
    match place(&mut lock(mutex)) {
        None => return false,
        Some(Some(held)) if held.will_wake(waker) => return true,
        Some(_) => {}
    }
    replace_waker_with(mutex, place, waker.clone())
}

/// Stores `waker` in the `place` inside `mutex`. Returns `false` if the place no longer exists.
///
/// Drops the replaced or unused waker outside the lock.
pub(crate) fn replace_waker_with<L: Lock>(
    mutex: &L,
    place: impl Fn(&mut L::Inside) -> Option<&mut Option<Waker>>,
    waker: Waker,
) -> bool {
    let mut waker = Some(waker);
    let mut state = lock(mutex);
    let is_there = match place(&mut state) {
        Some(place) => {
            std::mem::swap(place, &mut waker);
            true
        }
        None => false,
    };
    drop(state);
    unwind::drop_catching(waker);
    is_there
}

/// Polls `future` to completion on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let parker = CurrentParker::get();
    let clock = Clock::of_thread();
    let mut context = Context::from_waker(parker.waker());
    let output;
    // This block drops the future before the function returns. If a destructor panicked during the
    // return, the output would leak.
    {
        let mut future = pin!(future);
        output = loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => break output,
                Poll::Pending => parker.park_on(clock, Tick::NEVER, Order::NONE),
            }
        };
    }
    output
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;
