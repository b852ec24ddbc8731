//! Models of races between background threads: all orders with a few preemptions, or random orders.

use super::*;
use crate::sync::model_env;
use crate::sync::thread::{self, Thread};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

#[cfg(timeout_loom)]
use loom::thread::spawn;
#[cfg(timeout_shuttle)]
use shuttle::thread::spawn;

const PREEMPTIONS: usize = 2;

/// Bounds without threads for tasks that block.
fn at_most(threads: usize) -> Bounds {
    Bounds {
        usual: threads,
        most: threads,
    }
}

/// Counts the tasks that have run, and wakes the thread that waits for them.
struct Tally {
    runs: AtomicUsize,
    waiter: Thread,
    /// Blocking tasks run until this is cleared.
    blocks: AtomicBool,
    blocked: Mutex<Vec<Thread>>,
}

impl Tally {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            runs: AtomicUsize::new(0),
            waiter: thread::current(),
            blocks: AtomicBool::new(true),
            blocked: Mutex::new(Vec::new()),
        })
    }

    fn submit(self: &Arc<Self>, bounds: Bounds) {
        let tally = Arc::clone(self);
        BACKGROUND.submit(Box::new(move || tally.count()), bounds);
    }

    /// Submits a task that blocks until `release` is called.
    fn submit_blocking(self: &Arc<Self>, bounds: Bounds) {
        let tally = Arc::clone(self);
        let task = move || {
            lock(&tally.blocked).push(thread::current());
            while tally.blocks.load(SeqCst) {
                thread::park();
            }
            tally.count();
        };
        BACKGROUND.submit(Box::new(task), bounds);
    }

    fn count(&self) {
        self.runs.fetch_add(1, SeqCst);
        self.waiter.unpark();
    }

    fn release(&self) {
        self.blocks.store(false, SeqCst);
        lock(&self.blocked).iter().for_each(Thread::unpark);
    }

    /// Waits until `runs` tasks have run. If a task is lost, the model reports a deadlock.
    fn wait_for(&self, runs: usize) {
        while self.runs.load(SeqCst) < runs {
            thread::park();
        }
    }
}

#[test]
fn a_task_submitted_while_a_thread_becomes_idle_runs() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        tally.submit(at_most(2));
        tally.submit(at_most(2));
        tally.wait_for(2);
        tally.submit(at_most(2));
        tally.wait_for(3);
    });
}

#[test]
fn a_blocking_task_delays_no_other_task() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        tally.submit_blocking(at_most(2));
        tally.submit(at_most(2));
        tally.wait_for(1);
        tally.release();
        tally.wait_for(2);
    });
}

#[test]
fn tasks_beyond_the_maximum_number_of_threads_wait_and_run() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        tally.submit_blocking(at_most(1));
        let other = spawn({
            let tally = Arc::clone(&tally);
            move || tally.submit(at_most(1))
        });
        tally.release();
        other.join().unwrap();
        tally.wait_for(2);
    });
}

#[test]
fn a_task_submitted_while_a_thread_exits_runs() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        tally.submit(at_most(2));
        tally.wait_for(1);
        let other = spawn(|| model_env::advance(2 * KEEP_ALIVE));
        tally.submit(at_most(2));
        other.join().unwrap();
        tally.wait_for(2);
    });
}

#[test]
fn a_refused_thread_loses_no_task() {
    model_env::check(PREEMPTIONS, || {
        model_env::refuse_threads(1);
        let tally = Tally::new();
        let other = spawn({
            let tally = Arc::clone(&tally);
            move || tally.submit(at_most(2))
        });
        tally.submit(at_most(2));
        other.join().unwrap();
        tally.wait_for(2);
    });
}

// Fails if no thread watches the queue, if that thread sees no stall, or if none watches after one
// has exited.
#[cfg(timeout_shuttle)]
#[test]
fn a_task_behind_tasks_that_block_runs_after_a_stall() {
    model_env::check(PREEMPTIONS, || {
        let bounds = Bounds { usual: 1, most: 3 };
        let tally = Tally::new();
        let stall_until = |runs| {
            while tally.runs.load(SeqCst) < runs {
                model_env::advance(STALL);
                thread::yield_now();
            }
        };
        for _ in 0..3 {
            tally.submit(bounds);
        }
        stall_until(3);
        tally.submit_blocking(bounds);
        tally.submit_blocking(bounds);
        tally.submit(bounds);
        stall_until(4);
        tally.release();
        tally.wait_for(6);
    });
}

// Fails if a thread that watches the queue keeps other threads from being summoned, exits with
// tasks in the queue, or is counted after its end.
#[test]
fn a_task_submitted_while_the_queue_is_watched_runs() {
    model_env::check(PREEMPTIONS, || {
        let bounds = Bounds { usual: 1, most: 2 };
        let tally = Tally::new();
        for _ in 0..3 {
            tally.submit(bounds);
        }
        tally.wait_for(3);
        tally.submit(bounds);
        tally.wait_for(4);
    });
}
