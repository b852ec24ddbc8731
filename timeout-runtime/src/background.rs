//! Background threads, for code of users that may block and that no call waits for: callbacks of
//! tokens, wakers, and destructors of what was never used.
//!
//! ```text
//!   submit ──► queue ──► a thread that looks ──► runs one task ──► looks again ──► idle ──► gone
//! ```
//!
//! 1. While tasks are queued, a thread is about to look at the queue, unless [`MOST`] threads run
//!    tasks. A thread that takes a task and leaves others behind summons the next thread first, so
//!    a task that blocks holds up no other.
//! 2. At most one thread is summoned at a time: short tasks in a row are run by one thread.
//! 3. A thread takes tasks, becomes idle and leaves under the lock, so no task is left behind.
//! 4. Where the system refuses the only thread, the submitter runs all that is queued.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::Shrink;
use crate::parking::Parker;
use crate::sync::{Mutex, lock, one_per_process};
use crate::tick::Tick;
use crate::{threads, unwind};

/// Code that nobody waits for. A panic ends in it.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// How many threads there are at most.
const MOST: usize = 64;

/// How long an idle thread stays.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

struct Background {
    state: Mutex<State>,
}

struct State {
    queue: VecDeque<Task>,
    idle: Vec<Arc<Parker>>,
    /// All threads.
    live: usize,
    /// Threads that were summoned and have not looked at the queue since: none or one.
    looking: usize,
}

/// How a thread is made to look at the queue, once the lock is free.
enum Summons {
    Unpark(Arc<Parker>),
    Start,
}

one_per_process! {
    static BACKGROUND: Background = Background {
        state: Mutex::new(State::EMPTY),
    };
}

/// Runs `task` on a background thread, or here if there can be none.
pub(crate) fn run(task: impl FnOnce() + Send + 'static) {
    BACKGROUND.submit(Box::new(task), MOST);
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
        threads::start(name, None, move || self.live(most)).is_ok()
    }

    /// The system has refused a thread. If there is no other, all that is queued is run here.
    fn run_without_threads(&self) {
        let mut state = lock(&self.state);
        state.live -= 1;
        state.looking -= 1;
        if state.live > 0 {
            return;
        }
        let tasks = std::mem::take(&mut state.queue);
        drop(state);
        tasks.into_iter().for_each(unwind::contain);
    }

    /// The life of a thread, which was summoned by its start.
    fn live(&'static self, most: usize) {
        let parker = Arc::new(Parker::new());
        let mut was_summoned = true;
        loop {
            let mut state = lock(&self.state);
            state.looking -= usize::from(std::mem::take(&mut was_summoned));
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
        looking: 0,
    };

    /// Summons a thread, if tasks are queued and no thread is about to look at them.
    fn summon(&mut self, most: usize) -> Option<Summons> {
        if self.queue.is_empty() || self.looking > 0 {
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
        self.looking += 1;
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
