//! [`Participant`]: a thread or an operation that a clock waits for, and the one that the current
//! thread runs as.

use std::cell::Cell;
use std::panic::Location;
use std::sync::Arc;
use std::task::Waker;
use std::thread;

use crate::sync::{const_thread_local, lock};
use crate::unwind;

use super::{ClockId, Key, Kind, Next, VirtualClock};

const_thread_local! {
    static CURRENT: Cell<Option<(ClockId, Key)>> = Cell::new(None);
}

/// The clock of this thread.
#[inline]
pub(crate) fn current_clock() -> Option<ClockId> {
    CURRENT.with(Cell::get).map(|(clock, _)| clock)
}

/// The participant that this thread runs as.
pub(crate) fn here() -> Option<Here> {
    let (clock, key) = CURRENT.with(Cell::get)?;
    let clock = clock.get()?;
    Some(Here { clock, key })
}

/// A participant, as its own code sees it.
#[derive(Clone)]
pub(crate) struct Here {
    pub(crate) clock: Arc<VirtualClock>,
    pub(super) key: Key,
}

impl Here {
    /// Waits from now on, unless an alarm must ring first.
    pub(crate) fn wait(&self, waker: &Waker) -> Next {
        lock(&self.clock.state).wait(self.key, waker)
    }

    /// The participant was woken. Called by the waking side.
    pub(crate) fn wake(&self) {
        lock(&self.clock.state).wake(self.key);
    }

    /// Reads the activity, before this participant looks at what it waits for.
    pub(crate) fn activity(&self) -> u64 {
        lock(&self.clock.state).activity()
    }

    /// Rests from now on; it has looked at `activity`. Returns `false` if the clock is over.
    pub(crate) fn rest(&self, activity: u64) -> bool {
        loop {
            let next = lock(&self.clock.state).rest(self.key, activity);
            match next {
                Next::Ring(waker) => unwind::contain(|| waker.wake()),
                Next::Done => return true,
                Next::Over | Next::Hold => return false,
            }
        }
    }

    /// Looks again.
    pub(crate) fn resume(&self) {
        lock(&self.clock.state).resume(self.key);
    }

    /// Records that this code checks its token at `place`.
    pub(crate) fn check(&self, place: &'static Location<'static>) {
        lock(&self.clock.state).check(self.key, place);
    }

    /// Panics if the clock cannot move because a participant blocks elsewhere, and this code is
    /// that of a test.
    pub(crate) fn fail_if_stalled(&self) {
        if thread::panicking() || !lock(&self.clock.state).is_test(self.key) {
            return;
        }
        if let Some(report) = self.clock.stalled() {
            panic!("{report}");
        }
    }
}

/// A participant. It leaves when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Participant(Arc<Joined>);

struct Joined(Here);

impl Participant {
    /// A participant of `clock`, which runs from now on.
    pub(crate) fn join(clock: &Arc<VirtualClock>, kind: Kind) -> Self {
        let key = lock(&clock.state).join(kind);
        let clock = Arc::clone(clock);
        Self(Arc::new(Joined(Here { clock, key })))
    }

    /// A participant of the clock of this thread.
    pub(crate) fn join_here(kind: impl FnOnce() -> Kind) -> Option<Self> {
        let here = here()?;
        (!here.clock.is_over()).then(|| Self::join(&here.clock, kind()))
    }

    /// An operation of a call that starts on this thread.
    pub(crate) fn of_operation(name: &'static str) -> Option<Self> {
        Self::join_here(|| Kind::Operation(name))
    }

    /// Code that will run on a background thread, on behalf of this one.
    pub(crate) fn in_background() -> Option<Self> {
        Self::join_here(|| Kind::Background)
    }

    /// Makes this thread run as the participant until the guard is dropped.
    pub(crate) fn enter(&self) -> OnClock {
        let here = self.here();
        lock(&here.clock.state).enter(here.key, thread::current());
        OnClock::of(here)
    }

    pub(crate) fn here(&self) -> &Here {
        let Self(joined) = self;
        &joined.0
    }

    /// The operation waits for a worker.
    pub(crate) fn queue(&self) {
        let Here { clock, key } = self.here();
        lock(&clock.state).queue(*key);
    }

    /// A worker takes the operation.
    pub(crate) fn unqueue(&self) {
        self.here().wake();
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let Self(here) = self;
        loop {
            let next = lock(&here.clock.state).leave(here.key);
            let Next::Ring(waker) = next else { return };
            // Callbacks that this starts are on the clock too.
            let _on_clock = OnClock::of(here);
            unwind::contain(|| waker.wake());
        }
    }
}

/// Makes this thread run as a participant. Dropping it restores the one before.
#[must_use]
pub(crate) struct OnClock {
    before: Option<(ClockId, Key)>,
}

impl OnClock {
    pub(super) fn of(here: &Here) -> Self {
        let current = Some((here.clock.id, here.key));
        Self {
            before: CURRENT.with(|place| place.replace(current)),
        }
    }
}

impl Drop for OnClock {
    fn drop(&mut self) {
        CURRENT.with(|place| place.set(self.before));
    }
}
