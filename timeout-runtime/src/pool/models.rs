//! Models of what can race in the pool: in every order with a few preemptions, and in random
//! orders. Time moves only where a model says so.

use super::*;
use crate::sync::thread::Thread;
use crate::sync::{const_thread_local, model_env, one_per_process};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

#[cfg(timeout_loom)]
use loom::thread::spawn;
#[cfg(timeout_shuttle)]
use shuttle::thread::spawn;

/// Models with more than three threads use one less: that is hundreds of thousands of orders.
const PREEMPTIONS: usize = 3;

/// Longer than a worker without a job stays.
const LONG: Duration = Duration::from_secs(60);

/// A job of a model.
struct Modelled(Box<dyn FnOnce(&mut dyn FnMut()) + Send>);

impl Modelled {
    fn new(run: impl FnOnce(&mut dyn FnMut()) + Send + 'static) -> Self {
        Self(Box::new(run))
    }
}

impl Job for Modelled {
    fn run(self, _: WorkerName, free: &mut dyn FnMut()) {
        self.0(free);
    }
}

one_per_process! {
    static POOL: Pool<Modelled> = Pool::new();
}

const_thread_local! {
    static LAST: LastWorker<Modelled> = LastWorker::none();
}

/// Counts what became of jobs, and wakes the thread that waits for that.
struct Tally {
    runs: AtomicUsize,
    unrun: AtomicUsize,
    waits: Thread,
}

/// A job that is counted once.
struct Counted(Option<Arc<Tally>>);

impl Counted {
    fn run(mut self) {
        if let Some(tally) = self.0.take() {
            tally.runs.fetch_add(1, SeqCst);
            tally.waits.unpark();
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(tally) = &self.0 {
            tally.unrun.fetch_add(1, SeqCst);
        }
    }
}

impl Tally {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            runs: AtomicUsize::new(0),
            unrun: AtomicUsize::new(0),
            waits: thread::current(),
        })
    }

    fn runs(&self) -> usize {
        self.runs.load(SeqCst)
    }

    /// How many jobs were dropped without running.
    fn unrun(&self) -> usize {
        self.unrun.load(SeqCst)
    }

    fn job(self: &Arc<Self>) -> Modelled {
        let counted = Counted(Some(Arc::clone(self)));
        Modelled::new(|_| counted.run())
    }

    /// A job that makes its worker idle before it has ended, as calls do.
    fn early(self: &Arc<Self>) -> Modelled {
        let counted = Counted(Some(Arc::clone(self)));
        Modelled::new(|free| {
            free();
            counted.run();
        })
    }

    /// Waits for so many runs. If they never come, all threads are blocked.
    fn wait_for(&self, runs: usize) {
        while self.runs() < runs {
            thread::park();
        }
    }
}

fn try_submit(job: Modelled, cap: usize) -> Result<Place<Modelled>, NoWorker> {
    POOL.submit(job, cap, LAST.with(LastWorker::take))
}

fn submit(job: Modelled, cap: usize) -> Place<Modelled> {
    try_submit(job, cap).unwrap()
}

fn remember(handed: Handed<Modelled>) {
    LAST.with(|last| last.set(handed));
}

/// Submits `job` as a thread that remembers its last worker.
fn call(job: Modelled, cap: usize) {
    if let Place::Handed(handed) = submit(job, cap) {
        remember(handed);
    }
}

// Fails if `park_idle` does not check the queue, or checks it under another hold of the lock.
#[test]
fn a_job_is_queued_or_handed_over_while_a_worker_becomes_free() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        submit(tally.job(), 1);
        submit(tally.job(), 1);
        tally.wait_for(2);
    });
}

// Fails if a worker is claimed before it is removed from the list.
#[test]
fn a_worker_that_is_free_before_its_job_has_ended_takes_another() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        call(tally.early(), 1);
        call(tally.early(), 1);
        call(tally.early(), 1);
        tally.wait_for(3);
    });
}

// Fails if a worker is claimed by a load and a store.
#[test]
fn two_callers_at_one_worker_both_have_their_jobs_done_once() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        // From here on this thread claims the worker without the list.
        call(tally.early(), 1);
        let other = spawn({
            let tally = Arc::clone(&tally);
            move || drop(submit(tally.job(), 1))
        });
        call(tally.job(), 1);
        other.join().unwrap();
        tally.wait_for(3);
        assert_eq!((tally.runs(), tally.unrun()), (3, 0));
    });
}

/// The last worker once left between two reads of the pool, and the call at the cap got `NoWorker`.
/// And a worker that was claimed when its time was up looped until it was assigned its job.
// Fails if `retire` checks the queue under another hold of the lock.
#[test]
fn a_worker_that_leaves_is_handed_no_job_and_none_is_left_in_the_queue() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        call(tally.job(), 1);
        tally.wait_for(1);
        let time = spawn(|| model_env::advance(LONG));
        call(tally.job(), 1);
        time.join().unwrap();
        tally.wait_for(2);
        assert_eq!(POOL.stats(0).queued, 0);
    });
}

// Fails if a worker that leaves stays among the live ones, or if the cap is ignored.
#[test]
fn workers_that_leave_are_forgotten_and_make_room_for_others() {
    model_env::check(PREEMPTIONS - 1, || {
        let tally = Tally::new();
        submit(tally.job(), 2);
        submit(tally.job(), 2);
        tally.wait_for(2);
        model_env::advance(LONG);
        submit(tally.job(), 2);
        tally.wait_for(3);
        let state = lock(&POOL.state);
        assert!(state.live.len() <= 2);
        let is_live = |worker: &Arc<Worker<Modelled>>| state.live.contains_key(&worker.name);
        assert!(state.idle.iter().all(is_live));
    });
}

/// A worker once left between two reads of the pool, and the call was queued behind an endless one.
// Fails if a worker that leaves stays among the live ones.
#[test]
fn no_job_waits_for_a_busy_worker_where_there_is_room_for_another() {
    model_env::check(PREEMPTIONS - 1, || {
        let tally = Tally::new();
        let stuck = || loop {
            thread::park();
        };
        submit(Modelled::new(move |_| stuck()), 2);
        submit(tally.job(), 2);
        tally.wait_for(1);
        let time = spawn(|| model_env::advance(LONG));
        submit(tally.job(), 2);
        time.join().unwrap();
        tally.wait_for(2);
    });
}

// Fails if `withdraw` does nothing.
#[test]
fn a_withdrawn_job_never_runs_and_others_do() {
    model_env::check(PREEMPTIONS, || {
        let tally = Tally::new();
        let withdrawn = Tally::new();
        submit(tally.job(), 1);
        let place = submit(withdrawn.job(), 1);
        submit(tally.job(), 1);
        if let Place::Queued(ticket) = &place {
            POOL.withdraw(ticket);
            assert!(!lock(&POOL.state).queue.contains_key(&ticket.0));
        }
        tally.wait_for(2);
        if withdrawn.unrun() == 0 {
            // A worker has taken it already.
            withdrawn.wait_for(1);
        }
        assert_eq!(withdrawn.runs() + withdrawn.unrun(), 1);
    });
}

// Fails if a refused worker stays among the live ones.
#[test]
fn a_refused_start_gives_its_job_back_and_leaves_no_other_waiting() {
    model_env::check(PREEMPTIONS, || {
        model_env::refuse_threads(1);
        let tally = Tally::new();
        let submit = |tally: &Arc<Tally>| usize::from(try_submit(tally.job(), 1).is_ok());
        let other = spawn({
            let tally = Arc::clone(&tally);
            move || submit(&tally)
        });
        let accepted = submit(&tally) + other.join().unwrap();
        tally.wait_for(accepted);
        assert_eq!((tally.runs(), tally.unrun()), (accepted, 2 - accepted));
    });
}

/// Four callers share three workers, which start and leave; some callers give up.
#[cfg(timeout_shuttle)]
#[test]
fn every_job_is_run_or_withdrawn_once() {
    use shuttle::rand::{Rng, thread_rng};

    const CALLERS: usize = 4;
    const CALLS: usize = 5;

    model_env::check(PREEMPTIONS, || {
        model_env::refuse_threads(thread_rng().gen_range(0..2));
        let tally = Tally::new();
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                let tally = Arc::clone(&tally);
                spawn(move || {
                    for _ in 0..CALLS {
                        let job = match thread_rng().gen_range(0..2) {
                            0 => tally.job(),
                            _ => tally.early(),
                        };
                        match try_submit(job, 3) {
                            Ok(Place::Handed(handed)) => remember(handed),
                            Ok(Place::Queued(ticket)) if thread_rng().gen_range(0..3) == 0 => {
                                POOL.withdraw(&ticket);
                            }
                            Ok(Place::Queued(_)) | Err(NoWorker) => {}
                        }
                        assert!(POOL.stats(0).live <= 3);
                        if thread_rng().gen_range(0..4) == 0 {
                            model_env::advance(LONG);
                        }
                    }
                })
            })
            .collect();
        callers
            .into_iter()
            .for_each(|caller| caller.join().unwrap());
        while tally.runs() + tally.unrun() < CALLERS * CALLS {
            thread::park();
        }
        assert_eq!(tally.runs() + tally.unrun(), CALLERS * CALLS);
        assert_eq!(POOL.stats(0).queued, 0);
    });
}
