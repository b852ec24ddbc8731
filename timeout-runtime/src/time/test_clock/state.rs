//! [`State`]: the time of a test clock, its alarms, and its participants.
//!
//! ```text
//!             wait, rest                                       ring
//!   running ─────────────► waiting            time stands ──────────► time has moved
//!    │  ▲ ▲                   │                    ▲    (last running)      │
//!    │  │ └──── wake, resume ─┘                    └────── wait, leave ─────┘
//!    │  └─────────────────────── write off: blocks elsewhere
//!    └──── leave ────► gone
//! ```
//!
//! A participant is a thread, an operation or a future that the clock waits for before it moves.
//!
//! 1. Time moves in `ring` only: to the first alarm, which it takes out. Its caller is the only
//!    participant that runs, and runs on while it calls the waker of the alarm, without the lock.
//!    So no other alarm rings until each participant that the first one has woken waits again.
//! 2. The last running participant neither waits nor leaves while an alarm can ring: it rings it.
//!    So an alarm is never left behind by the last one to wait.
//! 3. A participant runs from its wake-up on, and not only once its thread is scheduled: the waking
//!    side counts it, and runs itself meanwhile or is no participant.
//! 4. Alarms ring in the order of their time. At one instant they ring in the order in which their
//!    numbers were taken.
//! 5. A participant that *rests* waits for something that only it can read, such as a channel. Time
//!    moves only if each of these has looked since the last time that another one waited or left.

use std::collections::BTreeMap;
use std::mem;
use std::panic::Location;
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;

use crate::time::Tick;

use super::Kind;
use super::alarms::Order;
use super::polls::TokioTime;

/// Identifies a participant of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub(super) u32);

/// What a participant does next that wants to wait or to leave.
pub(crate) enum Next {
    /// It waits now, or it has left.
    Done,
    /// It still runs. It calls this waker of an alarm without the lock, and tries again.
    Ring(Waker),
    /// It waits now, and must be polled again so that Tokio's time stands.
    Hold,
    /// The clock does not move any more.
    Over,
}

/// Whether the clock still moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    /// The last handle was dropped.
    Closed,
    /// A participant blocks elsewhere, as this text says.
    Stalled(String),
}

pub(crate) struct State {
    pub(super) now: Tick,
    pub(super) is_manual: bool,
    pub(super) alarms: BTreeMap<(Tick, Order), Waker>,
    pub(super) last_order: u64,
    pub(super) participants: BTreeMap<Key, Record>,
    last_key: u32,
    /// The number of participants that run.
    pub(super) running: usize,
    /// The number of participants that are code of a test. Without one, time stands.
    pub(super) tests: usize,
    /// The instants to which calls of `advance` move the clock.
    pub(super) targets: Vec<Tick>,
    /// Paused Tokio time, while it drives this clock.
    pub(super) tokio: Option<TokioTime>,
    /// Counts alarms, and waits and ends of participants. A participant that rests looks again
    /// after each.
    activity: u64,
    /// Counts signs of life. It stays the same while nothing happens.
    pub(super) signs: u64,
    pub(super) fate: Fate,
}

pub(super) struct Record {
    pub(super) kind: Kind,
    /// Code of a test, which has not begun to leave.
    is_test: bool,
    pub(super) does: Does,
    /// Woken since its current poll began.
    pub(super) is_woken: bool,
    /// Polled in a runtime whose time drives the clock.
    pub(super) is_in_tokio: bool,
    /// Wakes it when the clock is over.
    pub(super) waker: Option<Waker>,
    pub(super) thread: Option<Thread>,
    /// Where it last checked its token or waited.
    pub(super) place: Option<&'static Location<'static>>,
}

/// What a participant does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Run,
    Wait,
    /// Waits for something that it alone can read, and has looked at it at this activity.
    Rest(u64),
    /// Is polled inside another participant of this clock, which runs.
    RunInside,
    /// Waits, and is polled again and again, so that Tokio's time stands while others run.
    Hold,
    /// Blocks elsewhere. An explicit `advance` does not wait for it.
    BlockElsewhere,
}

/// The last instant that a clock can reach.
pub(super) const LAST: Tick = Tick::of_nanos(u64::MAX - 1);

impl State {
    pub(super) fn new(now: Tick, is_manual: bool) -> Self {
        Self {
            now,
            is_manual,
            alarms: BTreeMap::new(),
            last_order: 0,
            participants: BTreeMap::new(),
            last_key: 0,
            running: 0,
            tests: 0,
            targets: Vec::new(),
            tokio: None,
            activity: 0,
            signs: 0,
            fate: Fate::Open,
        }
    }

    pub(super) fn now(&self) -> Tick {
        self.now
    }

    pub(super) fn fate(&self) -> &Fate {
        &self.fate
    }

    pub(super) fn is_over(&self) -> bool {
        self.fate != Fate::Open
    }

    pub(super) fn has_reached(&self, at: Tick) -> bool {
        self.is_over() || self.now >= at
    }

    pub(super) fn activity(&self) -> u64 {
        self.activity
    }

    pub(super) fn signs(&self) -> u64 {
        self.signs
    }
}

/// How time moves.
impl State {
    /// The instant that is reached after `duration`, at the latest the last one.
    pub(super) fn after(&self, duration: Duration) -> Tick {
        self.now.plus(duration).min(LAST)
    }

    pub(super) fn add_target(&mut self, target: Tick) {
        self.targets.push(target);
    }

    pub(super) fn remove_target(&mut self, target: Tick) {
        if let Some(at) = self.targets.iter().position(|other| *other == target) {
            self.targets.swap_remove(at);
        }
        if self.targets.is_empty() {
            self.revive_all();
        }
    }

    /// The latest instant to which time may move now.
    pub(super) fn horizon(&self) -> Tick {
        if let Some(tokio) = &self.tokio {
            return tokio.reached.max(self.now);
        }
        if !self.is_manual && self.tests > 0 {
            return LAST;
        }
        let targets = self.targets.iter().copied();
        targets.fold(self.now, Tick::max)
    }

    /// Moves to the first alarm, if time may move so far, and takes the alarm.
    pub(super) fn ring(&mut self) -> Option<Waker> {
        let at = self.next_alarm()?;
        if self.is_over() || at > self.horizon() {
            return None;
        }
        self.now = self.now.max(at);
        self.activity += 1;
        self.signs += 1;
        self.alarms.pop_first().map(|(_, waker)| waker)
    }
}

/// Participants.
impl State {
    /// A new participant, which runs.
    pub(super) fn join(&mut self, kind: Kind) -> Key {
        self.last_key += 1;
        let key = Key(self.last_key);
        self.running += 1;
        self.tests += usize::from(kind.is_test());
        self.signs += 1;
        self.participants.insert(
            key,
            Record {
                kind,
                is_test: kind.is_test(),
                does: Does::Run,
                is_woken: false,
                is_in_tokio: false,
                waker: None,
                thread: None,
                place: None,
            },
        );
        key
    }

    /// Sets what a participant does.
    pub(super) fn set(&mut self, key: Key, does: Does) {
        let Some(record) = self.participants.get_mut(&key) else {
            return;
        };
        let before = mem::replace(&mut record.does, does);
        self.running += usize::from(does == Does::Run);
        self.running -= usize::from(before == Does::Run);
    }

    fn does(&self, key: Key) -> Option<Does> {
        self.participants.get(&key).map(|record| record.does)
    }

    /// Participants that block elsewhere hold the time again.
    fn revive_all(&mut self) {
        for record in self.participants.values_mut() {
            if record.does == Does::BlockElsewhere {
                record.does = Does::Run;
                self.running += 1;
            }
        }
    }

    /// A participant has shown that it does not block elsewhere.
    fn revive(&mut self, key: Key) {
        self.signs += 1;
        if self.does(key) == Some(Does::BlockElsewhere) {
            self.set(key, Does::Run);
        }
    }

    pub(super) fn is_last(&self, key: Key) -> bool {
        self.running == 1 && self.does(key) == Some(Does::Run)
    }

    /// Whether a participant rests. It moves the time itself if it finds nothing.
    fn has_resting(&self) -> bool {
        let mut records = self.participants.values();
        records.any(|record| matches!(record.does, Does::Rest(_)))
    }

    /// Whether each participant that rests, except for `key`, has looked since the last activity.
    fn have_looked(&self, key: Key) -> bool {
        let others = self.participants.iter().filter(|(other, _)| **other != key);
        let mut rests = others.map(|(_, record)| record.does);
        rests.all(|does| !matches!(does, Does::Rest(looked) if looked != self.activity))
    }

    /// What must happen before `key` waits or leaves, if it is the last one that runs.
    fn before_last(&mut self, key: Key) -> Option<Waker> {
        if !self.is_last(key) || self.has_resting() {
            return None;
        }
        self.ring().or_else(|| self.mirror_again(key))
    }

    /// A participant waits from now on, unless it rings an alarm first. `waker` ends the wait when
    /// the clock is over.
    pub(super) fn wait(&mut self, key: Key, waker: &Waker) -> Next {
        self.revive(key);
        if self.is_over() {
            return Next::Over;
        }
        if let Some(waker) = self.before_last(key) {
            return Next::Ring(waker);
        }
        self.set(key, Does::Wait);
        self.activity += 1;
        if let Some(record) = self.participants.get_mut(&key) {
            record.waker = Some(waker.clone());
        }
        Next::Done
    }

    /// As `wait`, for a participant that looks again by itself, and has looked at `activity`.
    pub(super) fn rest(&mut self, key: Key, activity: u64) -> Next {
        if self.is_over() {
            return Next::Over;
        }
        let is_fresh = activity == self.activity && self.have_looked(key);
        if is_fresh && self.is_last(key) {
            if let Some(waker) = self.ring() {
                return Next::Ring(waker);
            }
        }
        self.set(key, Does::Rest(activity));
        Next::Done
    }

    /// A participant that rested looks again.
    pub(super) fn resume(&mut self, key: Key) {
        if let Some(Does::Rest(_)) = self.does(key) {
            self.set(key, Does::Run);
        }
    }

    /// A participant that waits was woken. One that is being polled will not wait after this poll.
    pub(super) fn wake(&mut self, key: Key) {
        self.signs += 1;
        if let Some(Does::Wait | Does::Hold) = self.does(key) {
            self.set(key, Does::Run);
        }
        if let Some(record) = self.participants.get_mut(&key) {
            record.is_woken = true;
        }
    }

    /// A participant leaves, unless it rings an alarm first. Time moves as if it had left.
    pub(super) fn leave(&mut self, key: Key) -> Next {
        self.revive(key);
        self.forget(key);
        if let Some(waker) = self.before_last(key) {
            return Next::Ring(waker);
        }
        self.set(key, Does::Wait);
        self.activity += 1;
        self.participants.remove(&key);
        Next::Done
    }

    /// A participant that leaves keeps time from standing no more, and Tokio's time does not drive
    /// the clock on its behalf.
    fn forget(&mut self, key: Key) {
        let Some(record) = self.participants.get_mut(&key) else {
            return;
        };
        if mem::replace(&mut record.is_test, false) {
            self.tests -= 1;
        }
        if mem::replace(&mut record.is_in_tokio, false) {
            self.leave_tokio();
        }
    }

    /// A job that no worker has taken yet waits for one.
    pub(super) fn queue(&mut self, key: Key) {
        self.set(key, Does::Wait);
    }

    pub(super) fn enter(&mut self, key: Key, thread: Thread) {
        if let Some(record) = self.participants.get_mut(&key) {
            record.thread = Some(thread);
        }
    }

    /// A participant checks its token at `place`.
    pub(super) fn check(&mut self, key: Key, place: &'static Location<'static>) {
        self.revive(key);
        if let Some(record) = self.participants.get_mut(&key) {
            record.place = Some(place);
        }
    }

    pub(super) fn is_test(&self, key: Key) -> bool {
        let record = self.participants.get(&key);
        record.is_some_and(|record| record.is_test)
    }
}
