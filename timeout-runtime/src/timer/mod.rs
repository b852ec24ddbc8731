//! [`Timer`]: lazily started threads for the deadlines that no parked caller watches.
//!
//! ```text
//!   arming thread ──► its shard ──► earlier than all others? ──► unparks the keeper
//!
//!   keeper    ┌──► collects due alarms from all shards ──► fires them one by one ──┐
//!             │          │ none are due                                            │
//!             │          └──► parks until the earliest one ──┐                     │
//!             └──────────────────────────────────────────────┴─────────────────────┘
//!
//!   deputy: asleep ── alarms begin to fire ──► checks at intervals ── none fires ──► asleep
//!                                                  │
//!                                                  └─ one blocks ──► becomes the keeper
//! ```
//!
//! 1. An alarm fires at or after its time, once, unless it is disarmed before. Alarms that one
//!    thread arms for the same time fire in the order in which it arms them.
//! 2. A thread arms its alarms in one shard; the key names the shard. An alarm that is not earlier
//!    than all others writes to no memory that is shared by all threads.
//! 3. *Insert, then read `earliest`*; the keeper resets `earliest`, then collects. If the keeper
//!    has collected from a shard before an alarm is inserted there, that shard's lock makes the
//!    reset visible to the arming thread, which then lowers `earliest` and unparks the keeper.
//! 4. No alarm fires under a lock. An alarm whose code blocks holds up no other: the deputy takes
//!    over while others are collected or armed.

mod slab;
mod wheel;

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::memory::Shrink;
use crate::shards::{Shards, shards};
use crate::sync::{
    AtomicBool, AtomicNanos, AtomicU32, IS_MODEL, Mutex, Ordering, OwnLine, const_fn, lock,
};
use crate::threads::parking::{self, Parker};
use crate::time::Tick;
use crate::{forked, threads, unwind};

use wheel::{EntryKey, Wheel};

/// What an alarm does.
pub(crate) enum Alarm<F> {
    /// Wakes a task, which then reads its clock.
    Wake(Option<Waker>),
    /// Runs code of the layer above.
    Fire(F),
}

/// Code that runs at the time of its alarm, on a thread of the timer.
pub(crate) trait Fire: Send + 'static {
    /// Runs the code, which must not panic.
    fn fire(self);
}

/// Identifies an armed alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    serial: NonZeroU32,
    /// The index in its shard, times the number of shards, plus the number of the shard.
    place: u32,
}

impl Key {
    fn new(shard: usize, entry: EntryKey) -> Option<Self> {
        Some(Self {
            serial: entry.serial,
            place: entry.index.checked_mul(SHARDS)? + u32::try_from(shard).ok()?,
        })
    }

    fn shard(self) -> usize {
        (self.place % SHARDS) as usize
    }

    fn entry(self) -> EntryKey {
        EntryKey {
            index: self.place / SHARDS,
            serial: self.serial,
        }
    }
}

/// Few enough to be locked one after another each time the keeper wakes up.
const SHARDS: u32 = if IS_MODEL { 2 } else { 16 };

/// How many due alarms the keeper collects from a shard under one hold of its lock.
const BATCH: usize = if IS_MODEL { 2 } else { 256 };

/// An alarm whose code runs for longer blocks the keeper. The deputy checks at this interval.
const STUCK: Duration = Duration::from_millis(10);

/// The alarms of this process, and the threads that fire them.
pub(crate) struct Timer<F> {
    shards: Shards<Mutex<Wheel<Alarm<F>>>, { SHARDS as usize }>,
    /// No armed alarm is earlier, except while the keeper or the arming thread is about to look.
    earliest: OwnLine<AtomicNanos>,
    /// How many times due alarms were collected. It wraps around.
    batches: OwnLine<AtomicU32>,
    threads: OwnLine<Mutex<Threads<F>>>,
    has_keeper: AtomicBool,
}

struct Threads<F> {
    keeper: Option<Arc<Parker>>,
    deputy: Option<Deputy>,
    /// Collected alarms that are still to be fired.
    due: VecDeque<Alarm<F>>,
    /// Whether the keeper runs code of an alarm, which may block.
    is_firing: bool,
    /// Whether an alarm began to fire since the deputy checked last.
    has_fired: bool,
}

struct Deputy {
    parker: Arc<Parker>,
    is_asleep: bool,
}

impl<F: Fire> Timer<F> {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                shards: shards!(Mutex::new(Wheel::new()); SHARDS as usize),
                earliest: OwnLine(AtomicNanos::new(Tick::NEVER.nanos())),
                batches: OwnLine(AtomicU32::new(0)),
                threads: OwnLine(Mutex::new(Threads::NONE)),
                has_keeper: AtomicBool::new(false),
            }
        }
    }

    /// A number that changes before each alarm fires. While it stays the same, no alarm has fired.
    #[inline]
    pub(crate) fn fired_alarms(&self) -> u32 {
        self.batches.0.load(Ordering::Acquire)
    }

    /// Starts both threads, unless they run.
    pub(crate) fn start(&'static self) -> io::Result<()> {
        let mut threads = lock(&self.threads.0);
        self.start_keeper(&mut threads)?;
        self.start_deputy(&mut threads)
    }

    fn start_keeper(&'static self, threads: &mut Threads<F>) -> io::Result<()> {
        if threads.keeper.is_none() {
            threads.keeper = Some(spawn("timeout-timer", |parker| self.keep(&parker))?);
            self.has_keeper.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn start_deputy(&'static self, threads: &mut Threads<F>) -> io::Result<()> {
        if threads.deputy.is_none() {
            threads.deputy = Some(Deputy {
                parker: spawn("timeout-deputy", |parker| self.deputize(&parker))?,
                is_asleep: false,
            });
        }
        Ok(())
    }

    /// Arms an alarm for `at`. Returns `None` if there is no timer thread: the caller then reads
    /// its clock itself.
    pub(crate) fn arm(&'static self, at: Tick, alarm: Alarm<F>) -> Option<Key> {
        if threads::is_in_hook() || !self.has_keeper() {
            return None;
        }
        let (index, shard) = self.shards.own();
        let entry = lock(shard).insert(at, alarm);
        if at < self.earliest() {
            let before = self.earliest.0.fetch_min(at.nanos(), Ordering::Relaxed);
            if at.nanos() < before {
                self.wake_keeper();
            }
        }
        Key::new(index, entry)
    }

    /// Whether there is a keeper. Starts it before the first alarm.
    fn has_keeper(&'static self) -> bool {
        self.has_keeper.load(Ordering::Acquire)
            || !forked::is_child() && self.start_keeper(&mut lock(&self.threads.0)).is_ok()
    }

    /// Makes the keeper look at the shards again. While it fires alarms, makes the deputy watch it.
    #[cold]
    fn wake_keeper(&'static self) {
        let mut threads = lock(&self.threads.0);
        let parker = if threads.is_firing {
            self.rouse_deputy(&mut threads)
        } else {
            threads.keeper.clone()
        };
        drop(threads);
        if let Some(parker) = parker {
            parker.unpark();
        }
    }

    /// Makes the alarm wake `waker` from now on. Returns `false` if it has fired.
    pub(crate) fn rearm(&self, key: Key, waker: Waker) -> bool {
        parking::replace_waker_with(
            self.shards.at(key.shard()),
            |shard| match shard.get_mut(key.entry()) {
                Some(Alarm::Wake(place)) => Some(place),
                _ => None,
            },
            waker,
        )
    }

    /// Disarms an alarm. Nothing happens if it has fired.
    pub(crate) fn disarm(&self, key: Key) {
        let taken_back = lock(self.shards.at(key.shard())).remove(key.entry());
        if let Some(alarm) = taken_back {
            unwind::drop_catching(alarm);
        }
    }

    /// The loop of the keeper, which ends when the deputy has taken over.
    fn keep(&'static self, parker: &Arc<Parker>) {
        loop {
            let mut threads = lock(&self.threads.0);
            let keeper = threads.keeper.as_ref();
            if !keeper.is_some_and(|keeper| Arc::ptr_eq(keeper, parker)) {
                return;
            }
            if threads.due.is_empty() {
                let next = self.collect(&mut threads.due);
                if threads.due.is_empty() {
                    threads.is_firing = false;
                    drop(threads);
                    parker.park_until(next);
                    continue;
                }
            }
            let alarm = threads.due.pop_front();
            threads.due.shrink();
            threads.is_firing = true;
            threads.has_fired = true;
            let others_wait = !threads.due.is_empty() || !self.earliest().is_never();
            let deputy = others_wait.then(|| self.rouse_deputy(&mut threads));
            drop(threads);
            if let Some(deputy) = deputy.flatten() {
                deputy.unpark();
            }
            alarm.into_iter().for_each(fire);
        }
    }

    /// Collects due alarms. Returns the time at which the next one may be due.
    fn collect(&self, due: &mut VecDeque<Alarm<F>>) -> Tick {
        let earliest = &self.earliest.0;
        earliest.store(Tick::NEVER.nanos(), Ordering::Relaxed);
        let now = Tick::now();
        let mut next = Tick::NEVER;
        for shard in self.shards.all() {
            next = next.min(lock(shard).take_due(now, BATCH, due));
        }
        earliest.fetch_min(next.nanos(), Ordering::Relaxed);
        if !due.is_empty() {
            // Visible to the threads that the alarms wake.
            self.batches.0.fetch_add(1, Ordering::Release);
        }
        next
    }

    fn earliest(&self) -> Tick {
        Tick::of_nanos(self.earliest.0.load(Ordering::Relaxed))
    }

    /// The loop of the deputy. It becomes the keeper when that one is blocked.
    fn deputize(&'static self, parker: &Arc<Parker>) {
        loop {
            let mut threads = lock(&self.threads.0);
            let has_fired = std::mem::take(&mut threads.has_fired);
            if threads.is_firing && !has_fired {
                threads.keeper = threads.deputy.take().map(|deputy| deputy.parker);
                drop(threads);
                return self.keep(parker);
            }
            let is_busy = threads.is_firing || has_fired;
            if let Some(deputy) = &mut threads.deputy {
                deputy.is_asleep = !is_busy;
            }
            drop(threads);
            parker.park_until(if is_busy {
                Tick::now().plus(STUCK)
            } else {
                Tick::NEVER
            });
        }
    }

    /// Alarms fire: makes the deputy check them. Returns the parker to unpark for that.
    fn rouse_deputy(&'static self, threads: &mut Threads<F>) -> Option<Arc<Parker>> {
        self.start_deputy(threads).ok()?;
        let deputy = threads.deputy.as_mut()?;
        std::mem::take(&mut deputy.is_asleep).then(|| Arc::clone(&deputy.parker))
    }

    /// Makes the threads read the clock.
    #[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
    pub(crate) fn look_again(&self) {
        let threads = lock(&self.threads.0);
        let deputy = threads.deputy.as_ref().map(|deputy| &deputy.parker);
        for parker in threads.keeper.iter().chain(deputy) {
            parker.unpark();
        }
    }

    /// The number of armed alarms.
    #[cfg(all(test, timeout_shuttle))]
    fn armed(&self) -> usize {
        self.shards.all().map(|shard| lock(shard).len()).sum()
    }
}

/// Starts a thread of the timer.
fn spawn(name: &str, run: impl FnOnce(Arc<Parker>) + Send + 'static) -> io::Result<Arc<Parker>> {
    let parker = Arc::new(Parker::new());
    let run = {
        let parker = Arc::clone(&parker);
        move || run(parker)
    };
    threads::start(name.to_owned(), None, run)?;
    Ok(parker)
}

impl<F> Threads<F> {
    const NONE: Self = Self {
        keeper: None,
        deputy: None,
        due: VecDeque::new(),
        is_firing: false,
        has_fired: false,
    };
}

fn fire<F: Fire>(alarm: Alarm<F>) {
    match alarm {
        Alarm::Wake(Some(waker)) => unwind::contain(|| waker.wake()),
        Alarm::Wake(None) => {}
        Alarm::Fire(code) => code.fire(),
    }
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;
    use crate::threads::parking::CurrentParker;
    use crate::token::node::TIMER;

    #[test]
    fn an_earlier_alarm_wakes_the_sleeping_thread() {
        let far = TIMER
            .arm(
                Tick::now().plus(Duration::from_secs(3600)),
                Alarm::Wake(Some(Waker::noop().clone())),
            )
            .unwrap();
        let at = Tick::now().plus(Duration::from_millis(5));
        let parker = CurrentParker::get();
        let waker = || parker.waker().clone();
        let soon = TIMER.arm(at, Alarm::Wake(Some(waker()))).unwrap();
        while TIMER.rearm(soon, waker()) {
            parker.park_until(Tick::NEVER);
        }
        assert!(Tick::now() >= at);
        TIMER.disarm(far);
    }
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;
