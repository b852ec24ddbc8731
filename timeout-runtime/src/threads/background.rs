//! Background threads that run user code which may block and which no call waits for: token
//! callbacks, wakers, and destructors of unused values.
//!
//! ```text
//!   submit ──► queue ──► summoned thread ──► runs one task ──► checks the queue ──► idle ──► exit
//! ```
//!
//! 1. While tasks are queued, one thread is on its way to the queue, unless the usual number of
//!    threads is busy. A thread that takes a task summons the next thread first if more tasks are
//!    queued, so a blocking task delays no other task.
//! 2. At most one thread is summoned at a time: one thread runs a series of short tasks.
//! 3. If the usual number of threads is busy, one more thread watches the queue. If no task is
//!    taken for [`STALL`], this thread and [`MORE`] others take tasks. So tasks that block for
//!    long, such as the cancel requests to a lost server, delay other tasks by little, and a burst
//!    of short tasks starts no thread in excess.
//! 4. A thread takes a task, becomes idle and exits under the lock, so no task is lost.
//! 5. If the system refuses the only thread, the submitter runs all queued tasks.

use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::Shrink;
use crate::registry::muted;
use crate::sync::{Mutex, lock, one_per_process};
use crate::threads::parking::Parker;
use crate::time::test_clock::Participant;
use crate::time::{ClockHold, Tick};
use crate::{threads, unwind};

/// Code that no call waits for. Its panics are caught.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// How many threads there can be.
#[derive(Clone, Copy)]
struct Bounds {
    /// The maximum number while tasks are short.
    usual: usize,
    /// The maximum number while tasks block.
    most: usize,
}

const BOUNDS: Bounds = Bounds {
    usual: 64,
    most: 512,
};

/// How long queued tasks wait for a busy thread before more threads take them.
const STALL: Duration = Duration::from_millis(10);

/// How many threads can be started after a stall, besides the one that has watched the queue.
const MORE: usize = 15;

/// How long an idle thread waits for a task before it exits.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

struct Background {
    state: Mutex<State>,
}

struct State {
    queue: VecDeque<Task>,
    idle: Vec<Arc<Parker>>,
    /// The number of all threads, busy or idle.
    live: usize,
    /// Summoned threads that have not checked the queue yet: zero or one.
    summoned: usize,
    /// How many tasks were taken. It wraps around.
    taken: usize,
    /// Whether a thread watches the queue.
    is_watched: bool,
    /// How many threads can be started because the queue has stalled. Zero once it is empty.
    allowed: usize,
}

/// How to make a thread check the queue, after the lock is released.
enum Summons {
    Unpark(Arc<Parker>),
    Start(Role),
}

/// What a new thread does first.
#[derive(Clone, Copy)]
enum Role {
    /// It takes a task.
    Take,
    /// It waits until the queue stalls or is empty.
    Watch,
}

one_per_process! {
    static BACKGROUND: Background = Background {
        state: Mutex::new(State::EMPTY),
    };
}

/// Runs `task` on a background thread, or on this thread if none is available.
///
/// Paused time and test clocks do not advance until the task has run: other code can depend on it.
/// Functions that are muted on this thread stay muted while the task runs.
pub(crate) fn run(task: impl FnOnce() + Send + 'static) {
    run_each(iter::once(task));
}

/// As [`run`], for tasks that may run at the same time. Together they hold paused time once.
pub(crate) fn run_each<T: FnOnce() + Send + 'static>(tasks: impl ExactSizeIterator<Item = T>) {
    if tasks.len() == 0 {
        return;
    }
    let (muted, hold) = (muted::all(), ClockHold::here());
    for task in tasks {
        let (muted, hold) = (muted.clone(), hold.clone());
        let participant = Participant::in_background();
        let task = move || {
            let _on_clock = participant.as_ref().map(Participant::enter);
            muted::mute(&muted, || unwind::contain(task));
            hold.release();
        };
        BACKGROUND.submit(Box::new(task), BOUNDS);
    }
}

impl Background {
    fn submit(&'static self, task: Task, bounds: Bounds) {
        if !threads::are_available() {
            return unwind::contain(task);
        }
        let mut state = lock(&self.state);
        state.queue.push_back(task);
        let summons = state.summon(bounds);
        drop(state);
        self.deliver(summons, bounds);
    }

    fn deliver(&'static self, summons: Option<Summons>, bounds: Bounds) {
        match summons {
            None => {}
            Some(Summons::Unpark(parker)) => parker.unpark(),
            Some(Summons::Start(role)) if self.start(role, bounds) => {}
            Some(Summons::Start(role)) => self.run_without_threads(role),
        }
    }

    fn start(&'static self, role: Role, bounds: Bounds) -> bool {
        let name = "timeout-background".to_owned();
        threads::start(name, None, move || self.run_tasks(role, bounds)).is_ok()
    }

    /// Runs all queued tasks here, after the system has refused the only thread.
    fn run_without_threads(&self, role: Role) {
        let mut state = lock(&self.state);
        state.live -= 1;
        state.has_come(role);
        if state.live > 0 {
            return;
        }
        let tasks = std::mem::take(&mut state.queue);
        drop(state);
        tasks.into_iter().for_each(unwind::contain);
    }

    /// The main loop of a thread, which was summoned by its start.
    fn run_tasks(&'static self, role: Role, bounds: Bounds) {
        let parker = Arc::new(Parker::new());
        if matches!(role, Role::Watch) && !self.watch(&parker) {
            return;
        }
        let mut summoned_as = Some(role);
        loop {
            let mut state = lock(&self.state);
            if let Some(role) = summoned_as.take() {
                state.has_come(role);
                if matches!(role, Role::Watch) {
                    // `watch` returns after a stall only.
                    state.allowed = MORE;
                }
            }
            if let Some(task) = state.take() {
                let summons = state.summon(bounds);
                drop(state);
                self.deliver(summons, bounds);
                unwind::contain(task);
                continue;
            }
            state.idle.push(Arc::clone(&parker));
            drop(state);
            let until = Tick::now().plus(KEEP_ALIVE);
            loop {
                parker.park_until(until);
                let mut state = lock(&self.state);
                if !state.is_idle(&parker) {
                    summoned_as = Some(Role::Take);
                    break;
                }
                if Tick::now() >= until {
                    state.idle.retain(|idle| !Arc::ptr_eq(idle, &parker));
                    state.live -= 1;
                    return;
                }
            }
        }
    }

    /// Waits until no task was taken from the queue for a while. Returns `false` if the queue is
    /// empty before: the thread is in excess, and must exit.
    fn watch(&self, parker: &Parker) -> bool {
        let mut taken = None;
        loop {
            let mut state = lock(&self.state);
            if state.queue.is_empty() {
                state.has_come(Role::Watch);
                state.live -= 1;
                return false;
            }
            if taken == Some(state.taken) {
                return true;
            }
            taken = Some(state.taken);
            drop(state);
            let until = Tick::now().plus(STALL);
            while Tick::now() < until {
                parker.park_until(until);
            }
        }
    }
}

impl State {
    const EMPTY: Self = Self {
        queue: VecDeque::new(),
        idle: Vec::new(),
        live: 0,
        summoned: 0,
        taken: 0,
        is_watched: false,
        allowed: 0,
    };

    /// Summons a thread, if tasks are queued and no summoned thread is on its way. If all are busy,
    /// has the queue watched.
    fn summon(&mut self, bounds: Bounds) -> Option<Summons> {
        if self.queue.is_empty() || self.summoned > 0 {
            return None;
        }
        if let Some(parker) = self.idle.pop() {
            self.summoned += 1;
            return Some(Summons::Unpark(parker));
        }
        let role = if self.live >= bounds.most {
            return None;
        } else if self.live < bounds.usual {
            self.summoned += 1;
            Role::Take
        } else if self.allowed > 0 {
            self.allowed -= 1;
            self.summoned += 1;
            Role::Take
        } else if !self.is_watched {
            self.is_watched = true;
            Role::Watch
        } else {
            return None;
        };
        self.live += 1;
        Some(Summons::Start(role))
    }

    /// A thread that was summoned for this has come, or could not be started.
    fn has_come(&mut self, role: Role) {
        match role {
            Role::Take => self.summoned -= 1,
            Role::Watch => self.is_watched = false,
        }
    }

    fn take(&mut self) -> Option<Task> {
        let task = self.queue.pop_front()?;
        if self.queue.is_empty() {
            self.allowed = 0;
        }
        self.taken = self.taken.wrapping_add(1);
        self.queue.shrink();
        Some(task)
    }

    fn is_idle(&self, parker: &Arc<Parker>) -> bool {
        self.idle.iter().any(|idle| Arc::ptr_eq(idle, parker))
    }
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_stall_more_threads_are_started_until_the_queue_is_empty() {
        let bounds = Bounds { usual: 1, most: 4 };
        let mut state = State::EMPTY;
        for _ in 0..5 {
            state.queue.push_back(Box::new(|| {}));
        }
        let take_first = |state: &mut State| {
            state.has_come(Role::Take);
            assert!(state.take().is_some());
        };
        let summons = |state: &mut State| match state.summon(bounds) {
            Some(Summons::Start(Role::Take)) => "take",
            Some(Summons::Start(Role::Watch)) => "watch",
            Some(Summons::Unpark(_)) => "unpark",
            None => "none",
        };
        assert_eq!(summons(&mut state), "take");
        take_first(&mut state);
        assert_eq!([(); 2].map(|()| summons(&mut state)), ["watch", "none"]);
        state.has_come(Role::Watch);
        state.allowed = MORE;
        assert!(state.take().is_some());
        for live in [3, 4] {
            assert_eq!((summons(&mut state), state.live), ("take", live));
            take_first(&mut state);
        }
        assert_eq!(summons(&mut state), "none");
        assert!(state.take().is_some());
        // The next tasks are watched again.
        state.live -= 1;
        state.queue.push_back(Box::new(|| {}));
        assert_eq!(summons(&mut state), "watch");
    }
}
