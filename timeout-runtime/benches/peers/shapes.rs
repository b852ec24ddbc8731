//! Measures async calls in the shapes that people use: a near limit, a listener, a token, a nested
//! call. On one thread (rows A9 to A11) and on several (rows P).

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;

use timeout_runtime::add_listener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::annotated;
use crate::async_calls::{blocks, current_thread, ready};
use crate::finding::Finding;
use crate::group::{Group, Lane};
use crate::measured::{Figure, Measured, number};
use crate::operations::{self, FAR, NEAR_LIMIT};
use crate::options::Options;

const ROUNDS: usize = 31;

/// A batch of calls, each on a runtime of its thread.
type Batch = fn() -> Measured;

/// Awaits calls of one shape on the current thread.
macro_rules! batch {
    ($call:expr) => {
        || current_thread().block_on(blocks(25, 400, $call))
    };
}

const OURS_READY: Batch = batch!(annotated::ready);
const OURS_NEAR: Batch = batch!(annotated::ready_near);
const OURS_CHECKED: Batch = batch!(annotated::checked);
const OURS_NESTED: Batch = batch!(annotated::nested);
const OURS_PENDING: Batch = batch!(annotated::pending_once);

/// What users of Tokio write for a call whose operation has a token.
async fn checked(x: u64) -> Option<u64> {
    let token = CancellationToken::new();
    let operation = async { (!token.is_cancelled()).then(|| operations::add(x)) };
    let run = token.run_until_cancelled(timeout(FAR, operation)).await;
    run?.ok()?
}

async fn nested(x: u64) -> Option<u64> {
    timeout(FAR, ready(x)).await.ok()
}

pub(crate) fn on_one_thread(options: &Options) -> Vec<Finding> {
    let mut group = Group::new(options, "shapes, one thread");
    let near = group.lane(OURS_NEAR);
    let of_tokio = group.lane(batch!(|x| timeout(NEAR_LIMIT, ready(x))));
    group.ratio("A9", Figure::Median, near, of_tokio);
    let near_heard = heard(&mut group, OURS_NEAR);
    group.ratio("A9e", Figure::Median, near_heard, of_tokio);

    let ours = group.lane(OURS_CHECKED);
    let heard_too = heard(&mut group, OURS_CHECKED);
    let of_tokio = group.lane(batch!(checked));
    group.ratio("A10", Figure::Median, ours, of_tokio);
    group.ratio("A10e", Figure::Median, heard_too, of_tokio);

    let ours = group.lane(OURS_NESTED);
    let heard_too = heard(&mut group, OURS_NESTED);
    let of_tokio = group.lane(batch!(|x| timeout(FAR, nested(x))));
    group.ratio("A11", Figure::Median, ours, of_tokio);
    group.ratio("A11e", Figure::Median, heard_too, of_tokio);
    group.run(ROUNDS)
}

/// A lane with a listener.
fn heard(group: &mut Group<'_>, batch: Batch) -> Lane {
    group.lane(move || {
        let _listener = add_listener(|event| {
            black_box(event);
        });
        batch()
    })
}

/// The rows with 2 threads and with 8, each against one thread.
const SCALING: [(Batch, bool, &str, &str); 10] = [
    (OURS_READY, false, "P1a", "P1b"),
    (OURS_READY, true, "P2a", "P2b"),
    (OURS_NEAR, false, "P3a", "P3b"),
    (OURS_NEAR, true, "P4a", "P4b"),
    (OURS_CHECKED, false, "P5a", "P5b"),
    (OURS_CHECKED, true, "P6a", "P6b"),
    (OURS_NESTED, false, "P7a", "P7b"),
    (OURS_NESTED, true, "P8a", "P8b"),
    (OURS_PENDING, false, "P9a", "P9b"),
    (OURS_PENDING, true, "P10a", "P10b"),
];

pub(crate) fn on_several_threads(options: &Options) -> Vec<Finding> {
    let mut group = Group::new(options, "shapes, several threads");
    for (batch, with_listener, two, eight) in SCALING {
        let [one, twice, eightfold] = [1, 2, 8].map(|threads| {
            group.lane(move || {
                let _listener = with_listener.then(|| {
                    add_listener(|event| {
                        black_box(event);
                    })
                });
                on_threads(threads, batch)
            })
        });
        group.ratio(two, Figure::Median, twice, one);
        group.ratio(eight, Figure::Median, eightfold, one);
    }
    group.run(ROUNDS)
}

/// Runs the batch on several threads at the same time. The result is the mean over the threads.
fn on_threads(threads: usize, batch: Batch) -> Measured {
    let barrier = &Barrier::new(threads);
    let medians = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(move || {
                    barrier.wait();
                    batch().get(Figure::Median)
                })
            })
            .collect();
        let medians = threads
            .into_iter()
            .map(|thread| thread.join().expect("a batch does not panic"));
        medians.collect::<Vec<_>>()
    });
    Measured::only(medians.iter().sum::<f64>() / number(medians.len() as u64))
}
