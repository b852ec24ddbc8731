//! Measures async calls that return in time: rows A1 to A5 and A7.

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Instant;

use timeout_runtime::add_listener;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::annotated;
use crate::finding::Finding;
use crate::group::Group;
use crate::measured::{Figure, Measured, nanoseconds};
use crate::meter::{Cost, Meter};
use crate::offload::TOKIO;
use crate::operations::{self, FAR, NEAR, Pends};
use crate::options::Options;

const ROUNDS: usize = 31;
const POLLS: u32 = 1000;

tokio::task_local! { static SCOPE: u64; }

pub(crate) fn current_thread() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

pub(crate) async fn ready(x: u64) -> u64 {
    operations::add(x)
}

async fn pending_once(x: u64) -> u64 {
    Pends(1).await;
    operations::add(x)
}

async fn pending_often(times: u32) -> u64 {
    Pends(times).await;
    1
}

/// Awaits calls one after the other. Every sample is the mean of a block.
pub(crate) async fn blocks<F: Future>(count: u32, calls: u32, call: impl Fn(u64) -> F) -> Measured {
    let mut samples = Vec::with_capacity(count as usize);
    let meter = Meter::start();
    let begun = Instant::now();
    for _ in 0..count {
        let block = Instant::now();
        for x in 0..calls {
            black_box(call(u64::from(x)).await);
        }
        samples.push(nanoseconds(block.elapsed()) / f64::from(calls));
    }
    let wall = begun.elapsed();
    let cost = meter.stop();
    Measured::new(samples, u64::from(count) * u64::from(calls), wall, cost)
}

pub(crate) fn on_current_thread(options: &Options) -> Vec<Finding> {
    let runtime = &current_thread();
    let mut group = Group::new(options, "async, current_thread");
    let ours = group.lane(|| runtime.block_on(blocks(25, 400, annotated::ready)));
    let with_listener = group.lane(|| {
        let _listener = add_listener(|event| {
            black_box(event);
        });
        runtime.block_on(blocks(25, 400, annotated::ready))
    });
    let of_tokio = group.lane(|| runtime.block_on(blocks(25, 400, |x| timeout(FAR, ready(x)))));
    group.ratio("A1a", Figure::Median, ours, of_tokio);
    group.ratio("A1e", Figure::Median, with_listener, of_tokio);
    group.alone("A5a", Figure::Allocations, ours);

    let ours = group.lane(|| runtime.block_on(blocks(25, 200, annotated::pending_once)));
    let with_listener = group.lane(|| {
        let _listener = add_listener(|event| {
            black_box(event);
        });
        runtime.block_on(blocks(25, 200, annotated::pending_once))
    });
    let of_tokio =
        group.lane(|| runtime.block_on(blocks(25, 200, |x| timeout(FAR, pending_once(x)))));
    group.ratio("A2", Figure::Median, ours, of_tokio);
    group.ratio("A2e", Figure::Median, with_listener, of_tokio);
    group.alone("A5b", Figure::Allocations, ours);
    group.run(ROUNDS)
}

pub(crate) fn on_multi_thread(options: &Options) -> Vec<Finding> {
    let mut group = Group::new(options, "async, multi_thread");
    let ours = group.lane(|| in_task(blocks(25, 400, annotated::ready)));
    let of_tokio = group.lane(|| in_task(blocks(25, 400, |x| timeout(FAR, ready(x)))));
    group.ratio("A1b", Figure::Median, ours, of_tokio);

    let ours = group.lane(|| in_task(blocks(25, 4000, annotated::pending_once)));
    let of_tokio = group.lane(|| in_task(blocks(25, 4000, |x| timeout(FAR, pending_once(x)))));
    group.ratio("A3", Figure::Median, ours, of_tokio);
    group.run(ROUNDS)
}

fn in_task(batch: impl Future<Output = Measured> + Send + 'static) -> Measured {
    TOKIO
        .block_on(TOKIO.spawn(batch))
        .expect("a batch does not panic")
}

pub(crate) fn sleeping(options: &Options) -> Vec<Finding> {
    let runtime = &current_thread();
    let mut group = Group::new(options, "async, 1 ms of sleep");
    let ours = group.lane(|| runtime.block_on(blocks(20, 1, |_| annotated::sleep_async(NEAR))));
    let bare = group.lane(|| runtime.block_on(blocks(20, 1, |_| tokio::time::sleep(NEAR))));
    group.ratio("A4", Figure::Median, ours, bare);
    group.run(ROUNDS)
}

/// Measures the overhead of a poll over a poll of the operation alone.
pub(crate) fn polling(options: &Options) -> Vec<Finding> {
    let runtime = &current_thread();
    let mut group = Group::new(options, "polls");
    let ours = group.lane(|| runtime.block_on(async { polls(annotated::pending_often) }));
    let scope = group
        .lane(|| runtime.block_on(async { polls(|times| SCOPE.scope(7, pending_often(times))) }));
    let bare = group.lane(|| runtime.block_on(async { polls(pending_often) }));
    group.overhead("A7", Figure::Median, [ours, scope, bare]);
    group.run(ROUNDS)
}

/// Polls by hand, because the runtime's own cost would be many times the measured overhead.
fn polls<F: Future>(make: impl Fn(u32) -> F) -> Measured {
    let mut samples = Vec::with_capacity(200);
    let begun = Instant::now();
    for _ in 0..200 {
        let once = poll_to_end(make(0));
        let often = poll_to_end(make(POLLS));
        samples.push((often - once) / f64::from(POLLS));
    }
    Measured::new(samples, 200, begun.elapsed(), Cost::default()).without_cost()
}

fn poll_to_end(future: impl Future) -> f64 {
    let begun = Instant::now();
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    while black_box(future.as_mut().poll(&mut context)).is_pending() {}
    nanoseconds(begun.elapsed())
}
