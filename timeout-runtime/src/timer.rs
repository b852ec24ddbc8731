//! One lazy thread for the deadlines that no caller watches: those of async calls and of unattended tokens.
//!
//! Alarms wait in a heap and are disarmed in their slot; the heap's entry is left behind, dead. Limits are mostly a few
//! constants, so a new alarm is nearly always the latest one, and arming it is a push. Dead entries are thrown out once they
//! are the majority.
//!
//! ```text
//!   keeper: sleeps to the next alarm ──► rings it ──► looks again
//!   deputy: looks now and then, while alarms ring ──► does one ring for too long? then the keeper is stuck in it: takes over
//! ```
//!
//! 1. An alarm rings at or after its time, once, unless it is disarmed before.
//! 2. The keeper is woken only for an alarm earlier than all others.
//! 3. No alarm rings under the lock, and none waits for another one to be done ringing: a deputy stands by while one rings and
//!    others are set.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Mutex, Weak};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use slab::Slab;

use crate::parking;
use crate::sync::lock;
use crate::token::node::Node;
use crate::unwind;

/// What is done when the time has come.
pub(crate) enum Alarm {
    /// The caller of a call is woken to look at its clock.
    Wake(Option<Waker>),
    /// A token whose deadline nobody else watches is fired.
    Fire(Weak<Node>),
}

/// Names an armed alarm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    slot: usize,
    serial: u64,
}

struct Entry {
    at: Instant,
    slot: usize,
    serial: u64,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

struct Armed {
    serial: u64,
    alarm: Alarm,
}

/// What a thread of the timer is doing.
#[derive(Clone, Copy)]
enum Sleep {
    /// It is about to look at the heap, or rings.
    Awake,
    Until(Instant),
    /// No alarm is set.
    Forever,
}

struct Thread {
    handle: thread::Thread,
    sleep: Sleep,
}

impl Thread {
    /// Has the thread look again by `at`; whom to wake for that once the lock is free.
    fn look_by(&mut self, at: Instant) -> Option<thread::Thread> {
        let sleeps_on = match self.sleep {
            Sleep::Awake => true,
            Sleep::Until(until) => until <= at,
            Sleep::Forever => false,
        };
        if sleeps_on {
            return None;
        }
        self.sleep = Sleep::Awake;
        Some(self.handle.clone())
    }

    fn is_current(&self) -> bool {
        self.handle.id() == thread::current().id()
    }
}

struct State {
    heap: BinaryHeap<Reverse<Entry>>,
    armed: Slab<Armed>,
    serial: u64,
    keeper: Option<Thread>,
    /// Since when the keeper runs somebody's code, from which it may not come back.
    ringing: Option<Instant>,
    /// Whether an alarm has rung since the deputy looked last.
    has_rung: bool,
    deputy: Option<Thread>,
}

static STATE: Mutex<State> = Mutex::new(State {
    heap: BinaryHeap::new(),
    armed: Slab::new(),
    serial: 0,
    keeper: None,
    ringing: None,
    has_rung: false,
    deputy: None,
});

/// An alarm that rings for so long holds the keeper up; and so often the deputy looks.
const STUCK: Duration = Duration::from_millis(10);

/// So few dead entries are not worth a clean-up.
const FEW: usize = 64;

/// Sets an alarm for `at`. `None` if the thread cannot be started: the caller then looks at its clock itself.
pub(crate) fn arm(at: Instant, alarm: Alarm) -> Option<Key> {
    let mut state = lock(&STATE);
    if state.keeper.is_none() {
        state.keeper = Some(start("timeout-timer", keep)?);
    }
    state.serial += 1;
    let serial = state.serial;
    let slot = state.armed.insert(Armed { serial, alarm });
    state.heap.push(Reverse(Entry { at, slot, serial }));
    let wake = if state.ringing.is_some() {
        state.stand_by()
    } else {
        state.keeper.as_mut().and_then(|keeper| keeper.look_by(at))
    };
    drop(state);
    if let Some(thread) = wake {
        thread.unpark();
    }
    Some(Key { slot, serial })
}

fn start(name: &str, run: fn()) -> Option<Thread> {
    let thread = thread::Builder::new().name(name.into());
    let handle = thread.spawn(run).ok()?.thread().clone();
    Some(Thread {
        handle,
        sleep: Sleep::Awake,
    })
}

/// Has the alarm wake `waker` from now on. `false` if it has rung.
pub(crate) fn rearm(key: Key, waker: &Waker) -> bool {
    parking::store(
        &STATE,
        |state| match state.armed.get_mut(key.slot) {
            Some(Armed {
                serial,
                alarm: Alarm::Wake(place),
            }) if *serial == key.serial => Some(place),
            _ => None,
        },
        waker,
    )
}

/// Takes an alarm back; nothing happens if it has rung.
pub(crate) fn disarm(key: Key) {
    let Key { slot, serial } = key;
    let mut state = lock(&STATE);
    if state
        .armed
        .get(slot)
        .is_none_or(|armed| armed.serial != serial)
    {
        return;
    }
    let armed = state.armed.remove(slot);
    let live = state.armed.len();
    if state.heap.len() > 2 * live + FEW {
        let State { heap, armed, .. } = &mut *state;
        heap.retain(|Reverse(entry)| is_live(armed, entry));
    }
    drop(state);
    unwind::dispose(armed);
}

/// How many alarms are set, and how many entries the heap holds for them.
#[cfg(test)]
pub(crate) fn pending() -> (usize, usize) {
    let state = lock(&STATE);
    (state.armed.len(), state.heap.len())
}

fn is_live(armed: &Slab<Armed>, entry: &Entry) -> bool {
    armed
        .get(entry.slot)
        .is_some_and(|armed| armed.serial == entry.serial)
}

/// The keeper's life, which ends when its deputy had to take over.
fn keep() {
    loop {
        let mut state = lock(&STATE);
        if !state.keeper.as_ref().is_some_and(Thread::is_current) {
            return;
        }
        let now = Instant::now();
        match state.next() {
            Some(at) if at <= now => {
                let alarm = state.take_first();
                state.ringing = Some(now);
                state.has_rung = true;
                let wake = state.stand_by();
                drop(state);
                if let Some(deputy) = wake {
                    deputy.unpark();
                }
                alarm.into_iter().for_each(ring);
            }
            next => {
                state.ringing = None;
                if let Some(keeper) = &mut state.keeper {
                    keeper.sleep = next.map_or(Sleep::Forever, Sleep::Until);
                }
                drop(state);
                parking::park_until(next);
            }
        }
    }
}

/// The deputy's life: it becomes the keeper once that one is stuck.
fn deputize() {
    loop {
        let mut state = lock(&STATE);
        let now = Instant::now();
        let stuck_at = state.ringing.and_then(|since| since.checked_add(STUCK));
        if stuck_at.is_some_and(|at| at <= now) && state.next().is_some() {
            state.keeper = state.deputy.take();
            state.ringing = None;
            drop(state);
            return keep();
        }
        let is_busy = std::mem::take(&mut state.has_rung) || state.ringing.is_some();
        let look_again = if is_busy {
            now.checked_add(STUCK)
        } else {
            None
        };
        if let Some(deputy) = &mut state.deputy {
            deputy.sleep = look_again.map_or(Sleep::Forever, Sleep::Until);
        }
        drop(state);
        parking::park_until(look_again);
    }
}

impl State {
    /// The time of the first alarm. Dead entries before it are thrown out.
    fn next(&mut self) -> Option<Instant> {
        while let Some(Reverse(entry)) = self.heap.peek() {
            if is_live(&self.armed, entry) {
                return Some(entry.at);
            }
            self.heap.pop();
        }
        None
    }

    fn take_first(&mut self) -> Option<Alarm> {
        let Reverse(entry) = self.heap.pop()?;
        Some(self.armed.remove(entry.slot).alarm)
    }

    /// One alarm rings: a deputy looks after the others meanwhile. Whom to wake for that.
    fn stand_by(&mut self) -> Option<thread::Thread> {
        self.next()?;
        if self.deputy.is_none() {
            self.deputy = start("timeout-deputy", deputize);
        }
        let soon = Instant::now().checked_add(2 * STUCK)?;
        self.deputy.as_mut()?.look_by(soon)
    }
}

fn ring(alarm: Alarm) {
    match alarm {
        Alarm::Wake(Some(waker)) => unwind::contain(|| waker.wake()),
        Alarm::Wake(None) => {}
        Alarm::Fire(token) => {
            if let Some(token) = token.upgrade() {
                token.expire();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_alarms_are_thrown_out_once_they_are_the_majority() {
        let far = Instant::now() + Duration::from_secs(3600);
        for _ in 0..10_000 {
            disarm(arm(far, Alarm::Wake(Some(Waker::noop().clone()))).unwrap());
        }
        let (armed, entries) = pending();
        assert!(entries <= 2 * armed + FEW + 1, "{entries} for {armed}");
    }

    #[test]
    fn an_earlier_alarm_wakes_the_sleeping_thread() {
        let far = arm(
            Instant::now() + Duration::from_secs(3600),
            Alarm::Wake(Some(Waker::noop().clone())),
        )
        .unwrap();
        let at = Instant::now() + Duration::from_millis(5);
        let soon = arm(at, Alarm::Wake(Some(parking::waker()))).unwrap();
        while rearm(soon, &parking::waker()) {
            parking::park_until(None);
        }
        assert!(Instant::now() >= at);
        disarm(far);
    }
}
