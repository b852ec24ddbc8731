//! [`Phase`]: many calls of one kind, in parts that should take about the same time.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use timeout_runtime::workers::{self, Settings};
use timeout_runtime::{panic_on_timeout, timeout};
use tokio::runtime::{Builder, Runtime};

use super::caller::{self, Canceller};
use super::course::{Course, Way};
use super::ledger::{self, breach};
use super::random::Random;
use super::stock::Stock;

pub(crate) const PARTS: usize = 10;

/// Time after which an operation that has not ended fails the run.
const REST: Duration = Duration::from_secs(60);

/// The limit of the extra calls that time out.
const BESIDE: Duration = Duration::from_millis(20);

/// One worker for each caller that may need one, and spare ones for abandoned operations.
pub(crate) const WORKERS: usize = 128;

/// Starts all workers that the pool allows, and uses each of them once. They stay, so that each
/// stock includes the same workers.
fn start_all_workers(runtime: &Runtime) {
    Settings {
        cap: WORKERS,
        keep_alive: Duration::from_secs(3600),
        ..Settings::current()
    }
    .apply();
    let all = Arc::new(Barrier::new(WORKERS));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            let all = Arc::clone(&all);
            scope.spawn(|| runtime.block_on(meet(all)));
        }
    });
}

#[timeout(secs = 60, run = "worker", fallback = panic_on_timeout)]
async fn meet(all: Arc<Barrier>) {
    tokio::task::yield_now().await;
    all.wait();
}

/// The runtime and the canceller that all callers share.
pub(crate) struct Callers {
    runtime: Runtime,
    canceller: Canceller,
}

impl Callers {
    pub(crate) fn new() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(4)
            .enable_all()
            .build()
            .expect("threads");
        start_all_workers(&runtime);
        Self {
            runtime,
            canceller: Canceller::new(),
        }
    }

    /// Waits until no call is in progress.
    fn rest(&self) {
        let abandoned = workers::drain(REST);
        let start = Instant::now();
        loop {
            let busy = workers::stats().busy;
            let tasks = self.runtime.metrics().num_alive_tasks();
            if (abandoned, busy, tasks) == (0, 0, 0) {
                return;
            }
            if abandoned > 0 || start.elapsed() > REST {
                return breach(format!(
                    "left after a minute: {abandoned} operations, {busy} busy workers, {tasks} tasks"
                ));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Makes one call whose caller observes the deadline, and one whose timer does. Both time out.
    fn time_out(&self) {
        let [watched, polled] =
            [Way::Worker, Way::AsyncInline].map(|way| Course::times_out(way, BESIDE));
        caller::call(&watched, &self.canceller);
        let polled = caller::call_async(&polled, &self.canceller);
        self.runtime.block_on(polled);
    }
}

pub(crate) struct Phase {
    pub(crate) name: &'static str,
    /// Number of threads that make sync calls, and of tasks that make async calls.
    pub(crate) callers: usize,
    /// Calls of each caller in each part.
    pub(crate) calls: usize,
    /// Draws the course of the call with this number, for an async or a sync caller.
    pub(crate) draw: fn(&mut Random, bool, usize) -> Course,
    /// Whether each part makes two extra calls that time out.
    pub(crate) beside: bool,
}

impl Phase {
    pub(crate) fn run(&self, callers: &Callers, seed: u64) {
        let calls = 2 * self.callers * self.calls + if self.beside { 2 } else { 0 };
        println!(
            "\n{}: {PARTS} parts of {calls} by {} threads and {} tasks",
            self.name, self.callers, self.callers
        );
        println!(
            "{:>6}{:>10}{:>10}{}",
            "part",
            "seconds",
            "cpu",
            Stock::header()
        );
        let mut taken = Vec::with_capacity(PARTS);
        let mut costs = Vec::with_capacity(PARTS);
        for part in 0..PARTS {
            // After a breach the later numbers have no meaning.
            if ledger::breaches() > 0 {
                return;
            }
            ledger::turn_page(calls);
            let (start, cpu) = (Instant::now(), ProcessTime::now());
            self.part(part, callers, seed);
            let (elapsed, cpu) = (start.elapsed(), cpu.elapsed());
            callers.rest();
            ledger::audit();
            let stock = Stock::take();
            let row = stock.row();
            println!(
                "{part:>6}{:>10.2}{:>10.2}{row}",
                elapsed.as_secs_f64(),
                cpu.as_secs_f64()
            );
            taken.push(stock);
            costs.push(cpu);
        }
        taken[PARTS - 1].compare(&taken[1]);
        // Processor time, because other programs may delay the process.
        let (first, second) = costs.split_at(PARTS / 2);
        let [first, second] = [first, second].map(|half| half.iter().sum::<Duration>());
        if second > 3 * first {
            breach(format!(
                "{second:?} of processor time for the second half, {first:?} for the first"
            ));
        }
    }

    fn part(&self, part: usize, callers: &Callers, seed: u64) {
        let Callers { runtime, canceller } = callers;
        let (calls, draw) = (self.calls, self.draw);
        let random = |caller: usize, is_async: bool| {
            let place = (part * self.callers + caller) * 2 + usize::from(is_async);
            Random::sequence(seed, place as u64)
        };
        thread::scope(|scope| {
            let threads = (0..self.callers).map(|caller| {
                let mut random = random(caller, false);
                scope.spawn(move || {
                    for call in 0..calls {
                        caller::call(&draw(&mut random, false, call), canceller);
                    }
                })
            });
            let mut threads = threads.collect::<Vec<_>>();
            if self.beside {
                threads.push(scope.spawn(|| callers.time_out()));
            }
            let tasks = (0..self.callers).map(|caller| {
                let (mut random, canceller) = (random(caller, true), canceller.clone());
                runtime.spawn(async move {
                    for call in 0..calls {
                        caller::call_async(&draw(&mut random, true, call), &canceller).await;
                    }
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                runtime.block_on(task).expect("a caller without a panic");
            }
            // Joined here, since a scope may end before its threads have fully exited.
            for thread in threads {
                thread.join().expect("a caller without a panic");
            }
        });
    }
}
