//! Background threads that run user code which may block and which no call waits for: token
//! callbacks, wakers, and destructors of unused values.
//!
//! ```text
//!   submit ──► queue ──► summoned thread ──► runs one task ──► checks the queue ──► idle ──► exit
//! ```
//!
//! 1. While tasks are queued, one thread is on its way to the queue, unless [`MOST`] threads are
//!    busy. A thread that takes a task summons the next thread first if more tasks are queued, so
//!    a blocking task delays no other task.
//! 2. At most one thread is summoned at a time: one thread runs a series of short tasks.
//! 3. A thread takes a task, becomes idle and exits under the lock, so no task is lost.
//! 4. If the system refuses the only thread, the submitter runs all queued tasks.

use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::Shrink;
use crate::registry::muted;
use crate::sync::{Mutex, lock, one_per_process};
use crate::threads::parking::Parker;
use crate::time::ClockHold;
use crate::time::Tick;
use crate::{threads, unwind};

/// Code that no call waits for. Its panics are caught.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// The maximum number of threads.
const MOST: usize = 64;

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
}

/// How to make a thread check the queue, after the lock is released.
enum Summons {
    Unpark(Arc<Parker>),
    Start,
}

one_per_process! {
    static BACKGROUND: Background = Background {
        state: Mutex::new(State::EMPTY),
    };
}

/// Runs `task` on a background thread, or on this thread if none is available.
///
/// Paused time does not advance until the task has run: other code of the runtime can depend on it.
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
        let task = move || {
            muted::mute(&muted, || unwind::contain(task));
            hold.release();
        };
        BACKGROUND.submit(Box::new(task), MOST);
    }
}

impl Background {
    fn submit(&'static self, task: Task, most: usize) {
        if !threads::are_available() {
            return unwind::contain(task);
        }
        let mut state = lock(&self.state);
        state.queue.push_back(task);
        let summons = state.summon(most);
        drop(state);
        self.deliver(summons, most);
    }

    fn deliver(&'static self, summons: Option<Summons>, most: usize) {
        match summons {
            None => {}
            Some(Summons::Unpark(parker)) => parker.unpark(),
            Some(Summons::Start) if self.start(most) => {}
            Some(Summons::Start) => self.run_without_threads(),
        }
    }

    fn start(&'static self, most: usize) -> bool {
        let name = "timeout-background".to_owned();
        threads::start(name, None, move || self.run_tasks(most)).is_ok()
    }

    /// Runs all queued tasks here, after the system has refused the only thread.
    fn run_without_threads(&self) {
        let mut state = lock(&self.state);
        state.live -= 1;
        state.summoned -= 1;
        if state.live > 0 {
            return;
        }
        let tasks = std::mem::take(&mut state.queue);
        drop(state);
        tasks.into_iter().for_each(unwind::contain);
    }

    /// The main loop of a thread. Starting a thread summons it.
    fn run_tasks(&'static self, most: usize) {
        let parker = Arc::new(Parker::new());
        let mut was_summoned = true;
        loop {
            let mut state = lock(&self.state);
            state.summoned -= usize::from(std::mem::take(&mut was_summoned));
            if let Some(task) = state.take() {
                let summons = state.summon(most);
                drop(state);
                self.deliver(summons, most);
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
                    was_summoned = true;
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
}

impl State {
    const EMPTY: Self = Self {
        queue: VecDeque::new(),
        idle: Vec::new(),
        live: 0,
        summoned: 0,
    };

    /// Summons a thread, if tasks are queued and no summoned thread is on its way.
    fn summon(&mut self, most: usize) -> Option<Summons> {
        if self.queue.is_empty() || self.summoned > 0 {
            return None;
        }
        let summons = match self.idle.pop() {
            Some(parker) => Summons::Unpark(parker),
            None if self.live < most => {
                self.live += 1;
                Summons::Start
            }
            None => return None,
        };
        self.summoned += 1;
        Some(summons)
    }

    fn take(&mut self) -> Option<Task> {
        let task = self.queue.pop_front();
        self.queue.shrink();
        task
    }

    fn is_idle(&self, parker: &Arc<Parker>) -> bool {
        self.idle.iter().any(|idle| Arc::ptr_eq(idle, parker))
    }
}

#[cfg(all(test, any(timeout_loom, timeout_shuttle)))]
mod models;
