//! Measures sync calls that return in time: rows S1 to S11, S15 and S16a.

use std::hint::black_box;
use std::time::Duration;

use timeout_runtime::{TimeoutError, add_listener};

use crate::annotated;
use crate::callers::Callers;
use crate::child;
use crate::finding::Finding;
use crate::group::{Group, Lane};
use crate::java::Java;
use crate::measured::{Figure, Measured};
use crate::offload::{in_time, rayon, thread_per_call, tokio};
use crate::operations::{self, Operation};
use crate::options::Options;
use crate::partner::{Partner, Waiting};

const ROUNDS: usize = 21;

pub(crate) fn add(x: u64) -> u64 {
    in_time(annotated::add(x))
}

fn work(x: u64) -> u64 {
    in_time(annotated::work(x))
}

pub(crate) fn sleep(x: u64) -> u64 {
    in_time(annotated::sleep(x))
}

/// Measures calls without state.
pub(crate) fn plain(callers: Callers, call: Operation) -> impl FnMut() -> Measured {
    move || callers.measure(|| call)
}

pub(crate) fn partners(callers: Callers, waiting: Waiting) -> impl FnMut() -> Measured {
    move || {
        callers.measure(|| {
            let partner = Partner::new(waiting);
            move |x| partner.call(x)
        })
    }
}

/// Measures one caller of an operation that returns immediately.
pub(crate) fn one_caller(options: &Options) -> Vec<Finding> {
    let one = Callers::new(1);
    let mut group = Group::new(options, "1 caller");
    let ours = group.lane(plain(one, add));
    let with_listener = group.lane(move || {
        let _listener = add_listener(|event| {
            black_box(event);
        });
        one.measure(|| add)
    });
    let of_rayon = group.lane(plain(one, |x| rayon(operations::add, x)));
    let of_tokio = group.lane(plain(one, |x| tokio(operations::add, x)));
    let threads = group.lane(plain(one, |x| thread_per_call(operations::add, x)));
    let spinning = group.lane(partners(one, Waiting::Spinning));
    group.ratio("S1", Figure::Median, ours, of_rayon);
    group.ratio("S1e", Figure::Median, with_listener, of_rayon);
    group.ratio("S2", Figure::Median, ours, of_tokio);
    group.ratio("S2e", Figure::Median, with_listener, of_tokio);
    group.ratio("S3", Figure::Median, ours, threads);
    group.ratio("S4", Figure::Median, ours, spinning);
    group.ratio("S16a", Figure::Cpu, ours, of_tokio);
    group.alone("S15a", Figure::Allocations, ours);
    let beyond = group.lane(move || {
        one.measure(|| add)
            .without_bytes(size_of::<u64>() + size_of::<Result<u64, TimeoutError>>())
    });
    group.alone("S15b", Figure::Bytes, beyond);
    if let Some(mut java) = Java::start(options, "J1a") {
        let virtual_threads = group.lane(move || java.measure(one.time));
        group.ratio("J1a", Figure::Median, ours, virtual_threads);
    }
    group.run(ROUNDS)
}

/// Measures the same in a process whose workers do not spin.
pub(crate) fn without_spinning(options: &Options) -> Vec<Finding> {
    if !options.inside() {
        let rows = ["S5", "S6a", "S6b", "J1b"];
        return child::rows(options, &rows, &[("TIMEOUT_WORKER_SPIN", "0")]);
    }
    let one = Callers::new(1);
    let mut group = Group::new(options, "1 caller, no spinning");
    let ours = group.lane(plain(one, add));
    let parked = group.lane(partners(one, Waiting::Parked));
    let of_tokio = group.lane(plain(one, |x| tokio(operations::add, x)));
    let threads = group.lane(plain(one, |x| thread_per_call(operations::add, x)));
    group.ratio("S5", Figure::Median, ours, parked);
    group.ratio("S6a", Figure::Median, ours, of_tokio);
    group.ratio("S6b", Figure::Median, ours, threads);
    if let Some(mut java) = Java::start(options, "J1b") {
        let virtual_threads = group.lane(move || java.measure(one.time));
        group.ratio("J1b", Figure::Median, ours, virtual_threads);
    }
    group.run(ROUNDS)
}

pub(crate) fn two_callers(options: &Options) -> Vec<Finding> {
    let two = Callers::new(2);
    let mut group = Group::new(options, "2 callers");
    let ours = group.lane(plain(two, add));
    let pairs = group.lane(partners(two, Waiting::Parked));
    let of_tokio = group.lane(plain(two, |x| tokio(operations::add, x)));
    group.ratio("S7a", Figure::Median, ours, pairs);
    group.ratio("S7b", Figure::Median, ours, of_tokio);
    group.run(ROUNDS)
}

pub(crate) fn eight_callers(options: &Options) -> Vec<Finding> {
    let mut group = Group::new(options, "8 callers");
    let [ours, of_tokio, threads] = crowd(&mut group, 8, 40);
    group.ratio("S8a", Figure::Wall, ours, of_tokio);
    group.ratio("S8b", Figure::Wall, ours, threads);
    group.run(ROUNDS)
}

pub(crate) fn many_callers(options: &Options) -> Vec<Finding> {
    let mut group = Group::new(options, "64 callers");
    let [ours, of_tokio, threads] = crowd(&mut group, 64, 100);
    group.ratio("S8c", Figure::Wall, ours, of_tokio);
    group.ratio("S8d", Figure::Wall, ours, threads);
    group.ratio("S9a", Figure::Tail, ours, of_tokio);
    group.ratio("S9b", Figure::Worst, ours, of_tokio);
    group.run(ROUNDS)
}

fn crowd(group: &mut Group<'_>, count: usize, ms: u64) -> [Lane; 3] {
    let callers = Callers {
        time: Duration::from_millis(ms),
        ..Callers::new(count)
    };
    [
        group.lane(plain(callers, add)),
        group.lane(plain(callers, |x| tokio(operations::add, x))),
        group.lane(plain(callers, |x| thread_per_call(operations::add, x))),
    ]
}

/// Measures the overhead over operations that take time.
pub(crate) fn overheads(options: &Options) -> Vec<Finding> {
    let one = Callers::new(1);
    let mut group = Group::new(options, "100 µs of work");
    let bare = group.lane(plain(one, operations::work));
    let ours = group.lane(plain(one, work));
    let of_tokio = group.lane(plain(one, |x| tokio(operations::work, x)));
    let threads = group.lane(plain(one, |x| thread_per_call(operations::work, x)));
    group.overhead("S10a", Figure::Median, [ours, of_tokio, bare]);
    group.overhead("S10b", Figure::Median, [ours, threads, bare]);
    let mut findings = group.run(ROUNDS);

    let one = Callers {
        time: Duration::from_millis(60),
        ..one
    };
    let mut group = Group::new(options, "1 ms of sleep");
    let bare = group.lane(plain(one, operations::sleep));
    let ours = group.lane(plain(one, sleep));
    let of_tokio = group.lane(plain(one, |x| tokio(operations::sleep, x)));
    let threads = group.lane(plain(one, |x| thread_per_call(operations::sleep, x)));
    group.overhead("S11a", Figure::Median, [ours, of_tokio, bare]);
    group.overhead("S11b", Figure::Median, [ours, threads, bare]);
    findings.extend(group.run(ROUNDS));
    findings
}
