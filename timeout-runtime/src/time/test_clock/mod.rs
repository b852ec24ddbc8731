//! Virtual time for tests: [`VirtualClock`], and the participants that it waits for.
//!
//! A clock is known by its number, so that a deadline can be copied. `state.rs` has the rules for
//! its time. `participant.rs` has the participants that run on a thread, `polled.rs` those that
//! are polled, `polls.rs` the rules for these, and `watch.rs` names what blocks elsewhere.

mod alarms;
mod context_clock;
mod kind;
mod participant;
mod polled;
mod polls;
mod resting;
mod state;
#[cfg(feature = "tokio")]
mod tokio_time;
mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use crate::sync::{Mutex, lock, one_per_process};
use crate::time::Tick;
use crate::unwind;

pub(crate) use alarms::{Alarm, Order};
pub(crate) use context_clock::{ContextClock, Inside};
pub(crate) use kind::Kind;
pub(crate) use participant::{Here, OnClock, Participant, current_clock, here};
pub(crate) use polled::PolledParticipant;
pub(crate) use resting::Resting;
pub(crate) use state::{Key, Next};

use state::{Fate, State};
use watch::Need;

/// The number of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClockId(u32);

/// A virtual clock. It ends when its last handle is dropped; participants keep its state.
pub(crate) struct VirtualClock {
    id: ClockId,
    state: Mutex<State>,
}

/// The time that a new clock shows.
const START: Tick = Tick::of_nanos(1 << 62);

/// The system time that a new clock shows: the start of the year 2000.
const START_SINCE_EPOCH: Duration = Duration::from_secs(946_684_800);

/// All clocks of the process.
struct Clocks {
    table: Mutex<Table>,
}

struct Table {
    by_id: BTreeMap<ClockId, Weak<VirtualClock>>,
    last_id: u32,
}

one_per_process! {
    static CLOCKS: Clocks = Clocks {
        table: Mutex::new(Table { by_id: BTreeMap::new(), last_id: 0 }),
    };
}

impl ClockId {
    fn get(self) -> Option<Arc<VirtualClock>> {
        lock(&CLOCKS.table).by_id.get(&self)?.upgrade()
    }

    /// The time of the clock. A clock that no longer exists shows its start.
    pub(crate) fn now(self) -> Tick {
        self.get().map_or(START, |clock| clock.now())
    }

    /// The system time of the clock.
    pub(crate) fn system_time(self) -> SystemTime {
        let since = START_SINCE_EPOCH + self.now().since(START);
        let time = SystemTime::UNIX_EPOCH.checked_add(since);
        time.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// Whether the clock has reached `tick`. On a clock that is over, every deadline has passed.
    pub(crate) fn has_reached(self, tick: Tick) -> bool {
        let clock = self.get();
        clock.is_none_or(|clock| lock(&clock.state).has_reached(tick))
    }

    /// The next number for an alarm of this clock.
    pub(crate) fn order(self) -> Order {
        self.get().map_or(Order::NONE, |clock| clock.order())
    }

    /// Sets an alarm. Returns `None` if the clock has reached `at`, or is over.
    pub(crate) fn arm(self, at: Tick, order: Order, waker: Waker) -> Option<Alarm> {
        let clock = self.get()?;
        let is_ahead = !lock(&clock.state).has_reached(at);
        is_ahead.then(|| clock.arm(at, order, waker)).flatten()
    }
}

impl VirtualClock {
    pub(crate) fn new(is_manual: bool) -> Arc<Self> {
        let mut table = lock(&CLOCKS.table);
        table.last_id += 1;
        let id = ClockId(table.last_id);
        let state = Mutex::new(State::new(START, is_manual));
        let clock = Arc::new(Self { id, state });
        table.by_id.insert(id, Arc::downgrade(&clock));
        clock
    }

    pub(crate) fn id(&self) -> ClockId {
        self.id
    }

    pub(crate) fn now(&self) -> Tick {
        lock(&self.state).now()
    }

    /// The time since the start of the clock.
    pub(crate) fn since_start(&self) -> Duration {
        self.now().since(START)
    }

    pub(crate) fn order(&self) -> Order {
        lock(&self.state).order()
    }

    /// Sets an alarm, which rings even if the clock has reached `at`. Returns `None` if the clock
    /// is over.
    pub(crate) fn arm(self: &Arc<Self>, at: Tick, order: Order, waker: Waker) -> Option<Alarm> {
        let refused = lock(&self.state).arm(at, order, waker);
        match refused {
            Ok(()) => Some(Alarm {
                clock: Arc::clone(self),
                at,
                order,
            }),
            Err(waker) => {
                unwind::drop_catching(waker);
                None
            }
        }
    }

    /// The instant of the first alarm.
    pub(crate) fn next_alarm(&self) -> Option<Tick> {
        lock(&self.state).next_alarm()
    }

    /// Takes an alarm that is due in Tokio's time, if the participant is the only one that runs.
    fn ring_due(&self, key: Key) -> Option<Waker> {
        lock(&self.state).ring_due(key)
    }

    /// The instant that is reached after `duration`, at the latest the last one.
    pub(crate) fn after(&self, duration: Duration) -> Tick {
        lock(&self.state).after(duration)
    }

    /// Lets time move to `target` until the returned value is dropped.
    pub(crate) fn target(self: &Arc<Self>, target: Tick) -> Target {
        lock(&self.state).add_target(target);
        Target {
            clock: Arc::clone(self),
            at: target,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        lock(&self.state).is_over()
    }

    /// What blocked elsewhere, if that has ended the clock.
    pub(crate) fn stalled(&self) -> Option<String> {
        match lock(&self.state).fate() {
            Fate::Stalled(report) => Some(report.clone()),
            Fate::Open | Fate::Closed => None,
        }
    }

    /// The last handle was dropped: ends the time.
    pub(crate) fn close(&self) {
        let wakers = lock(&self.state).end(Fate::Closed);
        wake_all(wakers);
    }

    /// Counts signs of life. It stays the same while nothing happens.
    pub(crate) fn signs(&self) -> u64 {
        lock(&self.state).signs()
    }

    /// Nothing has happened for a while. Ends the time if a participant blocks elsewhere.
    pub(crate) fn judge(self: &Arc<Self>) {
        let need = lock(&self.state).judge();
        match need {
            Need::Nothing => {}
            // It rings when it leaves.
            Need::Ring => drop(Participant::join(self, Kind::Watcher)),
            Need::Wake(wakers) => wake_all(wakers),
        }
    }
}

fn wake_all(wakers: Vec<Waker>) {
    for waker in wakers {
        unwind::contain(|| waker.wake());
    }
}

impl Drop for VirtualClock {
    fn drop(&mut self) {
        lock(&CLOCKS.table).by_id.remove(&self.id);
    }
}

/// Lets time move to an instant. See `VirtualClock::target`.
pub(crate) struct Target {
    clock: Arc<VirtualClock>,
    at: Tick,
}

impl Drop for Target {
    fn drop(&mut self) {
        lock(&self.clock.state).remove_target(self.at);
    }
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;
