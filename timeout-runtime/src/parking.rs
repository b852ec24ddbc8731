//! Parked threads: a thread waits for the same [`Waker`]s as a task does.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::sleep;
use std::time::Duration;

use crate::sync::thread::{self, Thread};
use crate::sync::{Lock, lock, thread_local};
use crate::tick::Tick;
use crate::unwind;

/// The longest single park; a wait that is longer parks again.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

const HAS_THREADS: bool = cfg!(not(target_family = "wasm")) || cfg!(target_feature = "atomics");

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: Waker = Arc::new(Unpark(thread::current())).into();
}

/// A waker that unparks the current thread.
pub(crate) fn waker() -> Waker {
    WAKER
        .try_with(Clone::clone)
        .unwrap_or_else(|_| Arc::new(Unpark(thread::current())).into())
}

/// Parks until woken, or until `until` by the system's clock. It may return early; the caller looks again.
pub(crate) fn park_until(until: Tick) {
    if until.is_never() {
        return thread::park();
    }
    let left = until.since(Tick::now());
    if left.is_zero() {
        return;
    }
    if HAS_THREADS {
        thread::park_timeout(left.min(LONGEST));
    } else {
        // `park_timeout` returns immediately here, and no other thread exists that could unpark this one.
        sleep(left.min(LONGEST));
    }
}

/// Has the `place` inside `mutex` hold `waker`, or one that wakes the same; `false` if there is no such place any more.
///
/// Wakers are cloned and dropped outside the lock: both are somebody else's code.
pub(crate) fn store<L: Lock>(
    mutex: &L,
    place: impl Fn(&mut L::Inside) -> Option<&mut Option<Waker>>,
    waker: &Waker,
) -> bool {
    match place(&mut lock(mutex)) {
        None => return false,
        Some(Some(held)) if held.will_wake(waker) => return true,
        Some(_) => {}
    }
    put(mutex, place, waker.clone())
}

/// Has the `place` inside `mutex` hold `waker`; `false` if there is no such place any more. Whichever waker is left over is dropped outside
/// the lock.
pub(crate) fn put<L: Lock>(
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
    unwind::dispose(waker);
    is_there
}

/// Polls `future` to its end on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = waker();
    let mut context = Context::from_waker(&waker);
    let output;
    // It is dropped in here: where a destructor panics on the way out of a function, the value that is being returned is leaked.
    {
        let mut future = pin!(future);
        output = loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => break output,
                Poll::Pending => thread::park(),
            }
        };
    }
    output
}
