//! Measures operations on single tokens: rows T1 to T4.

use std::hint::black_box;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use timeout_runtime::CancelToken;
use tokio_util::sync::CancellationToken;

use crate::annotated;
use crate::finding::Finding;
use crate::group::Group;
use crate::measured::{Figure, Measured, blocks, blocks_that_count};
use crate::offload::in_time;
use crate::options::Options;

const ROUNDS: usize = 31;
const BLOCKS: u32 = 500;
/// Longer than any block, and shorter than a time slice: a longer block was preempted.
const MAX_BLOCK: Duration = Duration::from_micros(500);
const SIBLINGS: usize = 1000;

/// Measures reads on this thread while `others` threads read as well.
fn reading(others: usize, read: impl Fn() -> bool + Sync) -> Measured {
    let stop = AtomicBool::new(false);
    let progress = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..100 {
                        black_box(read());
                    }
                    progress.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut before = 0;
        let measured = blocks_that_count(
            BLOCKS,
            1000,
            || {
                black_box(read());
            },
            // On a busy machine the others do not always run, or run only instead of this thread.
            |took| {
                let now = progress.load(Ordering::Relaxed);
                let overlapped = mem::replace(&mut before, now) != now && took < MAX_BLOCK;
                others == 0 || overlapped
            },
        );
        stop.store(true, Ordering::Relaxed);
        measured
    })
}

pub(crate) fn reads(options: &Options) -> Vec<Finding> {
    let ours = &CancelToken::new();
    let grandchild = &ours.child().child();
    let flag = &Arc::new(AtomicBool::new(false));
    let other = &CancellationToken::new();
    let mut findings = Vec::new();
    for (others, title, rows) in [
        (0, "is_cancelled, 1 thread", ["T1a", "T1c", "T2a"]),
        (1, "is_cancelled, 2 threads", ["T1b", "T1d", "T2b"]),
    ] {
        let mut group = Group::new(options, title);
        let ours = group.lane(move || reading(others, || black_box(ours).is_cancelled()));
        let deep = group.lane(move || reading(others, || black_box(grandchild).is_cancelled()));
        let load = group.lane(move || reading(others, || black_box(flag).load(Ordering::Acquire)));
        let peer = group.lane(move || reading(others, || black_box(other).is_cancelled()));
        group.ratio(rows[0], Figure::Median, ours, load);
        group.ratio(rows[1], Figure::Median, deep, load);
        group.ratio(rows[2], Figure::Median, ours, peer);
        if others == 0 {
            let free_function = group.lane(|| in_time(annotated::inside(free_function)));
            group.ratio("T3", Figure::Median, free_function, peer);
        }
        findings.extend(group.run(ROUNDS));
    }
    findings
}

/// Measures `timeout_runtime::check`; runs inside a call.
fn free_function() -> Measured {
    reading(0, annotated::is_cancelled)
}

pub(crate) fn made(options: &Options) -> Vec<Finding> {
    let ours = &CancelToken::new();
    let peer = &CancellationToken::new();
    let _siblings: Vec<_> = (0..SIBLINGS).map(|_| ours.child()).collect();
    let _peers: Vec<_> = (0..SIBLINGS).map(|_| peer.child_token()).collect();
    let mut group = Group::new(options, "tokens made and dropped");
    let child = group.lane(|| blocks(40, 500, || drop(black_box(ours.child()))));
    let their_child = group.lane(|| blocks(40, 500, || drop(black_box(peer.child_token()))));
    group.ratio("T4a", Figure::Median, child, their_child);
    let new = group.lane(|| blocks(40, 500, || drop(black_box(CancelToken::new()))));
    let their_new = group.lane(|| blocks(40, 500, || drop(black_box(CancellationToken::new()))));
    group.ratio("T4b", Figure::Median, new, their_new);
    let clone = group.lane(|| blocks(40, 500, || drop(black_box(ours.clone()))));
    let their_clone = group.lane(|| blocks(40, 500, || drop(black_box(peer.clone()))));
    group.ratio("T4c", Figure::Median, clone, their_clone);
    group.run(ROUNDS)
}
