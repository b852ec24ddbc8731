//! Measures many callers with blocking operations: rows S12 and S13.
//!
//! They run in processes of their own, because the process then has many workers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::callers::Callers;
use crate::child;
use crate::finding::Finding;
use crate::group::Group;
use crate::measured::Figure;
use crate::offload::thread_per_call;
use crate::operations;
use crate::options::Options;
use crate::process_status::threads;
use crate::sync_calls::{plain, sleep};

const ROUNDS: usize = 15;
const CALLERS: u32 = 64;

fn callers() -> Callers {
    Callers {
        time: Duration::from_millis(80),
        ..Callers::new(CALLERS as usize)
    }
}

pub(crate) fn throughput(options: &Options) -> Vec<Finding> {
    if !options.inside() {
        return child::rows(options, &["S12a", "S12b"], &[]);
    }
    let mut group = Group::new(options, "64 callers, 1 ms of sleep");
    let ours = group.lane(plain(callers(), sleep));
    let bare = group.lane(plain(callers(), operations::sleep));
    let spawned = group.lane(plain(callers(), |x| thread_per_call(operations::sleep, x)));
    group.ratio("S12a", Figure::Throughput, ours, bare);
    group.ratio("S12b", Figure::Throughput, ours, spawned);
    group.run(ROUNDS)
}

pub(crate) fn workers(options: &Options) -> Vec<Finding> {
    if !options.inside() {
        return child::rows(options, &["S13"], &[]);
    }
    let Some(before) = threads().filter(|_| options.wants("S13")) else {
        return Vec::new();
    };
    let stop = AtomicBool::new(false);
    let most = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !stop.load(Ordering::Relaxed) {
                most = most.max(threads().unwrap_or(0));
                thread::sleep(Duration::from_micros(500));
            }
            most
        });
        for _ in 0..5 {
            callers().measure(|| sleep);
        }
        stop.store(true, Ordering::Relaxed);
        watch.join().expect("reading a file does not panic")
    });
    // Subtracts the callers and the thread that counts.
    let workers = most.saturating_sub(before + CALLERS + 1);
    vec![Finding::count("S13", f64::from(workers))]
}
