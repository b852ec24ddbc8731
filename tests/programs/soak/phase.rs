//! [`Phase`]: many calls of one sort, in parts that take about as long as each other.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use timeout_runtime::workers::{self, Settings};
use timeout_runtime::{panic_on_timeout, timeout};
use tokio::runtime::{Builder, Runtime};

use super::caller::{self, Canceller};
use super::course::{Course, Dice, Way};
use super::ledger::{self, breach};
use super::stock::Stock;

pub(crate) const PARTS: usize = 10;

/// So long everything may take to come to rest.
const REST: Duration = Duration::from_secs(60);

/// The limit of a call beside all others.
const BESIDE: Duration = Duration::from_millis(20);

/// As many workers as callers that may need one, and some for what is abandoned.
pub(crate) const WORKERS: usize = 128;

/// Starts all workers that there may be, and has each do what it keeps something for. They stay, so that what they take is the same
/// whenever stock is taken.
fn start_all_workers(runtime: &Runtime) {
    Settings::new()
        .cap(WORKERS)
        .keep_alive(Duration::from_secs(3600))
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

/// What all callers use.
pub(crate) struct Crowd {
    runtime: Runtime,
    canceller: Canceller,
}

impl Crowd {
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

    /// Waits until nothing is under way.
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

    /// Makes a call that is watched by its caller, and one that is watched by the timer. Both end by their limit.
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
    /// So many threads that make sync calls, and as many tasks that make async ones.
    pub(crate) callers: usize,
    /// Of each caller in each part.
    pub(crate) calls: usize,
    /// The course of an async or sync caller's call with this number.
    pub(crate) draw: fn(&mut Dice, bool, usize) -> Course,
    /// Whether in each part there are two calls that time out beside all these.
    pub(crate) beside: bool,
}

impl Phase {
    pub(crate) fn run(&self, crowd: &Crowd, seed: u64) {
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
            // Nothing can be said of what comes after a breach.
            if ledger::breaches() > 0 {
                return;
            }
            ledger::turn_page(calls);
            let (start, cpu) = (Instant::now(), ProcessTime::now());
            self.part(part, crowd, seed);
            let (elapsed, cpu) = (start.elapsed(), cpu.elapsed());
            crowd.rest();
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
        // Not by the clock on the wall, which goes on while others have the machine.
        let (first, second) = costs.split_at(PARTS / 2);
        let [first, second] = [first, second].map(|half| half.iter().sum::<Duration>());
        if second > 3 * first {
            breach(format!(
                "{second:?} of processor time for the second half, {first:?} for the first"
            ));
        }
    }

    fn part(&self, part: usize, crowd: &Crowd, seed: u64) {
        let Crowd { runtime, canceller } = crowd;
        let (calls, draw) = (self.calls, self.draw);
        let dice = |caller: usize, is_async: bool| {
            let place = (part * self.callers + caller) * 2 + usize::from(is_async);
            Dice::new(seed, place as u64)
        };
        thread::scope(|scope| {
            let threads = (0..self.callers).map(|caller| {
                let mut dice = dice(caller, false);
                scope.spawn(move || {
                    for call in 0..calls {
                        caller::call(&draw(&mut dice, false, call), canceller);
                    }
                })
            });
            let mut threads = threads.collect::<Vec<_>>();
            if self.beside {
                threads.push(scope.spawn(|| crowd.time_out()));
            }
            let tasks = (0..self.callers).map(|caller| {
                let (mut dice, canceller) = (dice(caller, true), canceller.clone());
                runtime.spawn(async move {
                    for call in 0..calls {
                        caller::call_async(&draw(&mut dice, true, call), &canceller).await;
                    }
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                runtime.block_on(task).expect("a caller does not panic");
            }
            // Joined, unlike at the end of the scope, they are gone when stock is taken.
            for thread in threads {
                thread.join().expect("a caller does not panic");
            }
        });
    }
}
