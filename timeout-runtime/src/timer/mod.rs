//! [`Timer`]: a lazily started thread for the deadlines that no parked caller watches.
//!
//! ```text
//!   keeper: sleeps until the next alarm ──► fires it ──► looks at the queue again
//!   deputy: checks now and then while alarms fire ──► one takes too long ──► becomes the keeper
//! ```
//!
//! 1. An alarm fires at or after its time, once, unless it is disarmed before.
//! 2. A new alarm wakes the keeper only if it is earlier than all others.
//! 3. No alarm fires under the lock. An alarm whose code blocks holds up no other: the deputy takes
//!    over while others are armed.

mod queue;

use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::memory::Table;
use crate::sync::{AtomicU32, Mutex, Ordering, const_fn, lock};
use crate::threads::parking::{self, Parker};
use crate::time::Tick;
use crate::{forked, threads, unwind};

pub(crate) use queue::Key;
use queue::{Entry, Queue};

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

/// What a thread of the timer does.
#[derive(Clone, Copy)]
enum Sleep {
    /// It is about to look at the queue, or fires an alarm.
    Awake,
    /// Without end, if no alarm is armed.
    Until(Tick),
}

struct Thread {
    parker: Arc<Parker>,
    sleep: Sleep,
}

impl Thread {
    /// Makes the thread look again by `at`. Returns the parker to unpark for that, once the lock is
    /// free.
    fn look_by(&mut self, at: Tick) -> Option<Arc<Parker>> {
        let sleeps_on = match self.sleep {
            Sleep::Awake => true,
            Sleep::Until(until) => until <= at,
        };
        if sleeps_on {
            return None;
        }
        self.sleep = Sleep::Awake;
        Some(Arc::clone(&self.parker))
    }
}

/// The alarms of this process, and the threads that fire them.
pub(crate) struct Timer<F> {
    state: Mutex<State<F>>,
    /// How many alarms have fired. It wraps around.
    fired_alarms: AtomicU32,
}

struct State<F> {
    queue: Queue,
    armed: Table<Alarm<F>>,
    keeper: Option<Thread>,
    /// Since when the keeper runs code of an alarm, which may block.
    firing: Option<Tick>,
    /// Whether an alarm has fired since the deputy looked last.
    has_fired: bool,
    deputy: Option<Thread>,
}

/// An alarm whose code runs for longer blocks the keeper. The deputy checks at this interval.
const STUCK: Duration = Duration::from_millis(10);

impl<F: Fire> Timer<F> {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                state: Mutex::new(State::EMPTY),
                fired_alarms: AtomicU32::new(0),
            }
        }
    }

    /// The number of alarms that have fired. While it stays the same, no alarm has fired.
    #[inline]
    pub(crate) fn fired_alarms(&self) -> u32 {
        self.fired_alarms.load(Ordering::Acquire)
    }

    /// Starts both threads, unless they run.
    pub(crate) fn start(&'static self) -> io::Result<()> {
        let mut state = lock(&self.state);
        self.start_keeper(&mut state)?;
        self.start_deputy(&mut state)
    }

    fn start_keeper(&'static self, state: &mut State<F>) -> io::Result<()> {
        if state.keeper.is_none() {
            state.keeper = Some(spawn("timeout-timer", |parker| self.keep(&parker))?);
        }
        Ok(())
    }

    fn start_deputy(&'static self, state: &mut State<F>) -> io::Result<()> {
        if state.deputy.is_none() {
            state.deputy = Some(spawn("timeout-deputy", |parker| self.deputize(&parker))?);
        }
        Ok(())
    }

    /// Arms an alarm for `at`. Returns `None` if there is no timer thread: the caller then reads
    /// its clock itself.
    pub(crate) fn arm(&'static self, at: Tick, alarm: Alarm<F>) -> Option<Key> {
        if threads::is_in_hook() {
            return None;
        }
        let mut state = lock(&self.state);
        if state.keeper.is_none() {
            if forked::is_child() {
                return None;
            }
            self.start_keeper(&mut state).ok()?;
        }
        let key = Key(state.armed.insert(alarm));
        state.queue.push(Entry { at, key });
        let wake = if state.firing.is_some() {
            self.stand_by(&mut state, Tick::now())
        } else {
            state.keeper.as_mut().and_then(|keeper| keeper.look_by(at))
        };
        drop(state);
        if let Some(parker) = wake {
            parker.unpark();
        }
        Some(key)
    }

    /// Makes the alarm wake `waker` from now on. Returns `false` if it has fired.
    pub(crate) fn rearm(&self, key: Key, waker: Waker) -> bool {
        parking::replace_waker_with(
            &self.state,
            |state| match state.armed.get_mut(key.0) {
                Some(Alarm::Wake(place)) => Some(place),
                _ => None,
            },
            waker,
        )
    }

    /// Disarms an alarm. Nothing happens if it has fired.
    pub(crate) fn disarm(&self, key: Key) {
        let mut state = lock(&self.state);
        let State { queue, armed, .. } = &mut *state;
        let Some(taken_back) = armed.remove(key.0) else {
            return;
        };
        if !queue.unpush(key) {
            queue.tidy(armed.len(), |key| armed.contains(key.0));
        }
        drop(state);
        unwind::drop_catching(taken_back);
    }

    /// The loop of the keeper, which ends when the deputy has taken over.
    fn keep(&'static self, parker: &Arc<Parker>) {
        loop {
            let mut state = lock(&self.state);
            let keeper = state.keeper.as_ref();
            if !keeper.is_some_and(|keeper| Arc::ptr_eq(&keeper.parker, parker)) {
                return;
            }
            let now = Tick::now();
            match state.next() {
                at if at <= now => {
                    let alarm = state.take_first();
                    // Visible to the thread that the alarm wakes.
                    self.fired_alarms.fetch_add(1, Ordering::Release);
                    state.firing = Some(now);
                    state.has_fired = true;
                    let wake = self.stand_by(&mut state, now);
                    drop(state);
                    if let Some(deputy) = wake {
                        deputy.unpark();
                    }
                    alarm.into_iter().for_each(fire);
                }
                next => {
                    state.firing = None;
                    if let Some(keeper) = &mut state.keeper {
                        keeper.sleep = Sleep::Until(next);
                    }
                    drop(state);
                    parker.park_until(next);
                }
            }
        }
    }

    /// The loop of the deputy. It becomes the keeper when that one is blocked.
    fn deputize(&'static self, parker: &Arc<Parker>) {
        loop {
            let mut state = lock(&self.state);
            let now = Tick::now();
            let is_stuck = state.firing.is_some_and(|since| since.plus(STUCK) <= now);
            if is_stuck && !state.next().is_never() {
                state.keeper = state.deputy.take();
                state.firing = None;
                drop(state);
                return self.keep(parker);
            }
            let is_busy = std::mem::take(&mut state.has_fired) || state.firing.is_some();
            let look_again = if is_busy {
                now.plus(STUCK)
            } else {
                Tick::NEVER
            };
            if let Some(deputy) = &mut state.deputy {
                deputy.sleep = Sleep::Until(look_again);
            }
            drop(state);
            parker.park_until(look_again);
        }
    }

    /// An alarm fires: makes the deputy watch it. Returns the parker to unpark for that.
    fn stand_by(&'static self, state: &mut State<F>, now: Tick) -> Option<Arc<Parker>> {
        if state.next().is_never() {
            return None;
        }
        self.start_deputy(state).ok()?;
        let soon = now.plus(2 * STUCK);
        state.deputy.as_mut()?.look_by(soon)
    }

    /// Makes the threads read the clock.
    #[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
    pub(crate) fn look_again(&self) {
        let state = lock(&self.state);
        for thread in state.keeper.iter().chain(&state.deputy) {
            thread.parker.unpark();
        }
    }

    /// The number of armed alarms, and of entries in the queue.
    #[cfg(test)]
    fn pending(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.armed.len(), state.queue.len())
    }
}

/// Starts a thread of the timer.
fn spawn(name: &str, run: impl FnOnce(Arc<Parker>) + Send + 'static) -> io::Result<Thread> {
    let parker = Arc::new(Parker::new());
    let run = {
        let parker = Arc::clone(&parker);
        move || run(parker)
    };
    threads::start(name.to_owned(), None, run)?;
    Ok(Thread {
        parker,
        sleep: Sleep::Awake,
    })
}

impl<F> State<F> {
    const EMPTY: Self = Self {
        queue: Queue::new(),
        armed: Table::new(),
        keeper: None,
        firing: None,
        has_fired: false,
        deputy: None,
    };

    fn first(&mut self) -> Option<Entry> {
        let armed = &self.armed;
        self.queue.first(|key| armed.contains(key.0))
    }

    /// The time of the first alarm.
    fn next(&mut self) -> Tick {
        self.first().map_or(Tick::NEVER, |first| first.at)
    }

    fn take_first(&mut self) -> Option<Alarm<F>> {
        let first = self.first()?;
        self.queue.pop(first);
        self.armed.remove(first.key.0)
    }
}

fn fire<F: Fire>(alarm: Alarm<F>) {
    match alarm {
        Alarm::Wake(Some(waker)) => unwind::contain(|| waker.wake()),
        Alarm::Wake(None) => {}
        Alarm::Fire(code) => code.fire(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::parking::CurrentParker;
    use crate::token::node::TIMER;

    #[test]
    fn dead_alarms_are_thrown_out_once_they_are_the_majority() {
        let far = Tick::now().plus(Duration::from_secs(3600));
        for _ in 0..10_000 {
            TIMER.disarm(
                TIMER
                    .arm(far, Alarm::Wake(Some(Waker::noop().clone())))
                    .unwrap(),
            );
        }
        let (armed, entries) = TIMER.pending();
        assert!(
            entries <= 2 * armed + queue::FEW + 1,
            "{entries} for {armed}"
        );
    }

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
