//! One lazy thread for the deadlines that no caller watches: those of async calls and of unattended tokens.
//!
//! Alarms wait in a heap and are disarmed in their slot; the heap's entry is left behind, dead. Limits are mostly a few
//! constants, so a new alarm is nearly always the latest one, and arming it is a push. Dead entries are thrown out once they
//! are the majority.
//!
//! 1. An alarm rings at or after its time, once, unless it is disarmed before.
//! 2. The thread is woken only for an alarm earlier than all others.
//! 3. No alarm rings under the lock.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Mutex, Weak};
use std::task::Waker;
use std::thread::{self, Thread};
use std::time::Instant;

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

/// What the thread is doing.
#[derive(Clone, Copy)]
enum Sleep {
    /// It is about to look at the heap.
    Awake,
    Until(Instant),
    /// No alarm is set.
    Forever,
}

struct State {
    heap: BinaryHeap<Reverse<Entry>>,
    armed: Slab<Armed>,
    serial: u64,
    thread: Option<Thread>,
    sleep: Sleep,
}

static STATE: Mutex<State> = Mutex::new(State {
    heap: BinaryHeap::new(),
    armed: Slab::new(),
    serial: 0,
    thread: None,
    sleep: Sleep::Awake,
});

/// So few dead entries are not worth a clean-up.
const FEW: usize = 64;
/// So many alarms are taken out under one lock.
const BATCH: usize = 256;

/// Sets an alarm for `at`. `None` if the thread cannot be started: the caller then looks at its clock itself.
pub(crate) fn arm(at: Instant, alarm: Alarm) -> Option<Key> {
    let mut state = lock(&STATE);
    if state.thread.is_none() {
        state.thread = Some(
            thread::Builder::new()
                .name("timeout-timer".into())
                .spawn(run)
                .ok()?
                .thread()
                .clone(),
        );
    }
    state.serial += 1;
    let serial = state.serial;
    let slot = state.armed.insert(Armed { serial, alarm });
    state.heap.push(Reverse(Entry { at, slot, serial }));
    let earliest = match state.sleep {
        Sleep::Awake => false,
        Sleep::Until(until) => at < until,
        Sleep::Forever => true,
    };
    let wake = if earliest {
        state.sleep = Sleep::Awake;
        state.thread.clone()
    } else {
        None
    };
    drop(state);
    if let Some(thread) = wake {
        thread.unpark();
    }
    Some(Key { slot, serial })
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
    drop(armed);
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

fn run() {
    let mut due = Vec::new();
    loop {
        let mut state = lock(&STATE);
        let next = take_due(&mut state, &mut due);
        if due.is_empty() {
            state.sleep = next.map_or(Sleep::Forever, Sleep::Until);
            drop(state);
            parking::park_until(next);
            lock(&STATE).sleep = Sleep::Awake;
        } else {
            drop(state);
            due.drain(..).for_each(ring);
        }
    }
}

/// Moves what is due into `due`; the time of the first alarm that is not.
fn take_due(state: &mut State, due: &mut Vec<Alarm>) -> Option<Instant> {
    let now = Instant::now();
    while let Some(Reverse(entry)) = state.heap.peek() {
        let live = is_live(&state.armed, entry);
        if live && (entry.at > now || due.len() == BATCH) {
            return Some(entry.at);
        }
        if live {
            due.push(state.armed.remove(entry.slot).alarm);
        }
        state.heap.pop();
    }
    None
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
    use std::time::Duration;

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
