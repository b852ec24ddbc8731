//! What races among background threads, in every order with a few preemptions, and in random orders.

use super::*;
use crate::sync::model_env;
use crate::sync::thread::{self, Thread};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

#[cfg(timeout_loom)]
use loom::thread::spawn;
#[cfg(timeout_shuttle)]
use shuttle::thread::spawn;

const PREEMPTIONS: usize = 2;

/// How many tasks have run, and the thread that waits for them.
struct Tally {
    runs: AtomicUsize,
    waits: Thread,
    /// While this is set, tasks that block do not end.
    holds: AtomicBool,
    held: Mutex<Vec<Thread>>,
}

impl Tally {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            runs: AtomicUsize::new(0),
            waits: thread::current(),
            holds: AtomicBool::new(true),
            held: Mutex::new(Vec::new()),
        })
    }

    fn submit(self: &Arc<Self>, most: usize) {
        let tally = Arc::clone(self);
        BACKGROUND.submit(Box::new(move || tally.count()), most);
    }

    /// Submits a task that ends when `let_go` is called.
    fn submit_blocking(self: &Arc<Self>, most: usize) {
        let tally = Arc::clone(self);
        let task = move || {
            lock(&tally.held).push(thread::current());
            while tally.holds.load(SeqCst) {
                thread::park();
            }
            tally.count();
        };
        BACKGROUND.submit(Box::new(task), most);
    }

    fn count(&self) {
        self.runs.fetch_add(1, SeqCst);
        self.waits.unpark();
    }

    fn let_go(&self) {
        self.holds.store(false, SeqCst);
        lock(&self.held).iter().for_each(Thread::unpark);
    }

    /// Waits for so many runs. If they do not come, all threads are blocked.
    fn wait_for(&self, runs: usize) {
        while self.runs.load(SeqCst) < runs {
            thread::park();
        }
    }
}

#[test]
fn every_task_runs_beside_a_thread_that_becomes_idle() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        tally.submit(2);
        tally.submit(2);
        tally.wait_for(2);
        tally.submit(2);
        tally.wait_for(3);
    });
}

#[test]
fn a_task_that_blocks_holds_up_no_other() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        tally.submit_blocking(2);
        tally.submit(2);
        tally.wait_for(1);
        tally.let_go();
        tally.wait_for(2);
    });
}

#[test]
fn tasks_past_the_most_threads_wait_and_run() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        tally.submit_blocking(1);
        let other = spawn({
            let tally = Arc::clone(&tally);
            move || tally.submit(1)
        });
        tally.let_go();
        other.join().unwrap();
        tally.wait_for(2);
    });
}

#[test]
fn a_task_runs_beside_a_thread_that_leaves() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        tally.submit(2);
        tally.wait_for(1);
        let other = spawn(|| model_env::advance(2 * KEEP_ALIVE));
        tally.submit(2);
        other.join().unwrap();
        tally.wait_for(2);
    });
}

#[test]
fn a_refused_thread_leaves_no_task_behind() {
    model_env::check(PREEMPTIONS, || {
        model_env::refuse_threads(1);
        let tally = Tally::new();
        let other = spawn({
            let tally = Arc::clone(&tally);
            move || tally.submit(2)
        });
        tally.submit(2);
        other.join().unwrap();
        tally.wait_for(2);
    });
}
