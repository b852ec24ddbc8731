//! Measures 100 000 pending calls with one deadline: row A6.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use timeout_runtime::Deadline;
use tokio::runtime::Runtime;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout_at;

use crate::annotated;
use crate::async_calls::current_thread;
use crate::child;
use crate::finding::Finding;
use crate::group::Group;
use crate::measured::{Figure, Measured, nanoseconds};
use crate::options::Options;
use crate::process_status::memory;

const ROUNDS: usize = 7;
const MANY: u32 = 100_000;

/// Time to create all calls, also on a busy machine.
const SOON: Duration = Duration::from_secs(1);
const FAR: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A task without a limit.
    Bare,
    Ours,
    Tokio,
}

/// Tasks, each of which has been polled once.
struct Waiting {
    runtime: Runtime,
    tasks: Vec<JoinHandle<()>>,
}

async fn wait(begun: Arc<AtomicU32>) {
    begun.fetch_add(1, Ordering::Relaxed);
    pending::<()>().await;
}

impl Waiting {
    fn start(kind: Kind, ends: Instant) -> Self {
        let runtime = current_thread();
        let mut tasks = Vec::with_capacity(MANY as usize);
        runtime.block_on(async {
            let begun = Arc::new(AtomicU32::new(0));
            let deadline = Deadline::at(ends);
            for _ in 0..MANY {
                let begun = Arc::clone(&begun);
                tasks.push(match kind {
                    Kind::Bare => tokio::spawn(wait(begun)),
                    Kind::Ours => tokio::spawn(async move {
                        let _ = annotated::wait(deadline, begun).await;
                    }),
                    Kind::Tokio => tokio::spawn(async move {
                        let _ = timeout_at(ends.into(), wait(begun)).await;
                    }),
                });
            }
            while begun.load(Ordering::Relaxed) < MANY {
                yield_now().await;
            }
        });
        Self { runtime, tasks }
    }

    fn end(self) {
        self.runtime.block_on(async {
            for task in self.tasks {
                // An error means that the task was aborted.
                let _ = task.await;
            }
        });
    }
}

/// Measures the time from the deadline to the end of the last call.
fn expire(kind: Kind) -> Measured {
    let ends = Instant::now() + SOON;
    let waiting = Waiting::start(kind, ends);
    if Instant::now() >= ends {
        return Measured::only(f64::NAN);
    }
    waiting.end();
    Measured::only(nanoseconds(ends.elapsed()))
}

/// Measures the time to drop all calls, per call.
fn abort(kind: Kind) -> Measured {
    let waiting = Waiting::start(kind, Instant::now() + FAR);
    let begun = Instant::now();
    for task in &waiting.tasks {
        task.abort();
    }
    waiting.end();
    Measured::only(nanoseconds(begun.elapsed()) / f64::from(MANY))
}

/// Measures the memory of a call, in a fresh process.
fn held(kind: Kind) -> Measured {
    let bytes = child::finished(&mut child::command("pending", &[&format!("{kind:?}")]));
    let bytes = bytes.and_then(|bytes| bytes.trim().parse().ok());
    Measured::only(bytes.unwrap_or(f64::NAN))
}

/// The job of the process that measures the memory.
pub(crate) fn hold(words: &[String]) {
    let kinds = [Kind::Bare, Kind::Ours, Kind::Tokio];
    let named = |kind: &Kind| words.first() == Some(&format!("{kind:?}"));
    let kind = kinds.into_iter().find(named).expect("a kind");
    // Makes the allocations of a first call, such as those of the timer.
    drop(current_thread().block_on(annotated::never()));
    let before = memory();
    let waiting = Waiting::start(kind, Instant::now() + FAR);
    let bytes = memory().zip(before).map(|(after, before)| after - before);
    println!(
        "{}",
        bytes.map_or(f64::NAN, |bytes| bytes / f64::from(MANY))
    );
    drop(waiting);
}

pub(crate) fn all(options: &Options) -> Vec<Finding> {
    let mut group = Group::new(options, "100 000 pending");
    let [ours, of_tokio, bare] =
        [Kind::Ours, Kind::Tokio, Kind::Bare].map(|kind| group.lane(move || held(kind)));
    if memory().is_some() {
        group.overhead("A6a", Figure::Held, [ours, of_tokio, bare]);
    }
    let [ours, of_tokio] = [Kind::Ours, Kind::Tokio].map(|kind| group.lane(move || expire(kind)));
    group.ratio("A6b", Figure::Median, ours, of_tokio);
    let [ours, of_tokio] = [Kind::Ours, Kind::Tokio].map(|kind| group.lane(move || abort(kind)));
    group.ratio("A6c", Figure::Median, ours, of_tokio);
    group.run(ROUNDS)
}
